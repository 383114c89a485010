package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const manifests = "../../../packaging/kubernetes"

// built returns what `kubectl apply -k` sends.
func built(t *testing.T, folder string) []byte {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	made, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// chosen returns what is sent where these lines of the kustomization are no comments.
func chosen(t *testing.T, lines ...string) []byte {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(manifests)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "kustomization.yaml")
	read, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(read)
	for _, line := range lines {
		before := text
		if text = strings.Replace(text, "# - "+line, "- "+line, 1); text == before {
			t.Fatalf("no line %q", line)
		}
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return built(t, folder)
}

func problems(t *testing.T, text []byte, external ...string) string {
	t.Helper()
	objects, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(Check(objects, external...), "\n")
}

func TestWhatKustomizeBuildsIsWhole(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(manifests, "optional", "*.yaml"))
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	optional := []string{}
	for _, file := range files {
		optional = append(optional, "optional/"+filepath.Base(file))
	}
	for name, lines := range map[string][]string{
		"as it is":    {},
		"spark":       {"spark"},
		"maintenance": {"maintenance"},
		"optional":    optional,
		"all":         append([]string{"spark", "maintenance"}, optional...),
	} {
		t.Run(name, func(t *testing.T) {
			if found := problems(t, chosen(t, lines...)); found != "" {
				t.Error(found)
			}
		})
	}
}

func TestAPodWithSparkHasMoreMemoryAndRoom(t *testing.T) {
	text := string(chosen(t, "spark"))
	for _, wanted := range []string{"memory: 4Gi", "sizeLimit: 8Gi", "memory: 1Gi"} {
		if !strings.Contains(text, wanted) {
			t.Errorf("no %q in:\n%s", wanted, text)
		}
	}
}

// what a slip of an editor looks like, and what is said of it
var slips = []struct{ from, to, said string }{
	{"readOnlyRootFilesystem: true", "readOnlyRootFileSystem: true", "unknown field"},
	{"replicas: 1", "replicas: 1\n  replicas: 1", "already set"},
	{"kind: StatefulSet", "kind: StatefulSets", "no kind"},
	{"storage: 1Gi", "storage: much", "quantities must match"},
	{"replicas: 1", "replicas: 2", "replicas is not 1"},
	{"matchLabels:\n      app.kubernetes.io/name: walstream", "matchLabels:\n      app.kubernetes.io/name: other",
		"the selector of the StatefulSet does not take the pod"},
	{"clusterIP: None\n  ", "", "no headless Service"},
	{"targetPort: probes", "targetPort: probe", "leads to no port probe"},
	{"port: probes\n          periodSeconds: 10", "port: probe\n          periodSeconds: 10",
		"the liveness probe goes to no port"},
	{"path: /ready", "path: /health", "the readiness probe asks for /health"},
	{"value: 0.0.0.0:8322", "value: 0.0.0.0:8323", "asked for at port 8322"},
	{"mountPath: /var/lib/walstream", "mountPath: /var/lib/other", "the state is not on its volume"},
	{"mountPath: /run/secrets/walstream", "mountPath: /run/secrets/other",
		"/run/secrets/walstream/dsn is not mounted"},
	{"mountPath: /run/secrets/walstream", "mountPath: /etc/walstream/secrets", "are one in the other"},
	{"- mountPath: /tmp\n          name: tmp", "", "the volume tmp is not mounted"},
	{"defaultMode: 288", "defaultMode: 292", "is for all to read"},
	{"terminationGracePeriodSeconds: 60", "terminationGracePeriodSeconds: 20", "is not above 20"},
	{"- ALL", "- NET_RAW", "has privileges"},
	{"runAsUser: 10001", "runAsUser: 1000", "the image's user"},
}

func TestASlipIsSeen(t *testing.T) {
	right := string(built(t, manifests))
	for _, slip := range slips {
		t.Run(slip.said, func(t *testing.T) {
			text := strings.Replace(right, slip.from, slip.to, 1)
			if text == right {
				t.Fatalf("no %q in:\n%s", slip.from, right)
			}
			objects, err := Decode([]byte(text))
			found := strings.Join(Check(objects), "\n")
			if err != nil {
				found = err.Error()
			}
			if !strings.Contains(found, slip.said) {
				t.Errorf("not said: %q, but: %s", slip.said, found)
			}
		})
	}
}
