package kubernetes

import (
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const chartFolder = "../../../packaging/helm/walstream"

func loaded(t *testing.T) *chart.Chart {
	t.Helper()
	made, err := loader.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// cases returns the values of each file in the chart's ci folder, and none at all.
func cases(t *testing.T) map[string]chartutil.Values {
	t.Helper()
	found := map[string]chartutil.Values{"default": {}}
	files, err := filepath.Glob(filepath.Join(chartFolder, "ci", "*-values.yaml"))
	if err != nil || len(files) != 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		values, err := chartutil.ReadValuesFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(filepath.Base(file), "-values.yaml")] = values
	}
	return found
}

// rendered does what `helm template` does; the values go through the chart's schema.
func rendered(t *testing.T, release string, values chartutil.Values) (map[string]string, error) {
	t.Helper()
	made := loaded(t)
	options := chartutil.ReleaseOptions{Name: release, Namespace: "data", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(made, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(made, all)
}

func joined(files map[string]string) []byte {
	names := []string{}
	for name := range files {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var text strings.Builder
	for _, name := range names {
		text.WriteString("---\n# " + name + "\n" + files[name] + "\n")
	}
	return []byte(text.String())
}

func TestTheChartHasNothingToLint(t *testing.T) {
	for name, values := range cases(t) {
		t.Run(name, func(t *testing.T) {
			for _, message := range lint.AllWithKubeVersion(chartFolder, values, "data", nil).Messages {
				if message.Severity > support.InfoSev {
					t.Error(message)
				}
			}
		})
	}
}

// WALSTREAM_RENDERED is a folder in which what is rendered is left, for walstream to read.
func TestWhatTheChartRendersIsWhole(t *testing.T) {
	out := os.Getenv("WALSTREAM_RENDERED")
	for name, values := range cases(t) {
		t.Run(name, func(t *testing.T) {
			files, err := rendered(t, "shop", values)
			if err != nil {
				t.Fatal(err)
			}
			text := joined(files)
			if found := problems(t, text, "walstream-config"); found != "" {
				t.Errorf("%s\n%s", found, text)
			}
			if out != "" {
				if err := os.WriteFile(filepath.Join(out, name+".yaml"), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if notes := files["walstream/templates/NOTES.txt"]; !strings.Contains(notes, "walstream destroy") {
				t.Error(notes)
			}
		})
	}
}

func TestAValueThatTheChartDoesNotHaveIsRefused(t *testing.T) {
	for said, values := range map[string]chartutil.Values{
		"replicas":                          {"replicas": 2},
		"persistence":                       {"persistence": map[string]any{"accessMode": "ReadWriteMany"}},
		"terminationGracePeriodSeconds":     {"terminationGracePeriodSeconds": 5},
		"serviceMonitor.enabled needs":      {"metrics": map[string]any{"serviceMonitor": map[string]any{"enabled": true}}},
		"additional properties 'mountpath'": {"secrets": []any{map[string]any{"name": "a", "mountpath": "/b"}}},
	} {
		t.Run(said, func(t *testing.T) {
			_, err := rendered(t, "shop", values)
			if err == nil || !strings.Contains(err.Error(), said) {
				t.Errorf("not refused with %q: %v", said, err)
			}
		})
	}
}

func TestAnotherConfigurationIsAnotherPod(t *testing.T) {
	sums := map[string]bool{}
	for _, config := range []string{"a = 1\n", "a = 2\n"} {
		files, err := rendered(t, "shop", chartutil.Values{"config": config})
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(files["walstream/templates/statefulset.yaml"]) {
			if strings.Contains(line, "checksum/config") {
				sums[line] = true
			}
		}
	}
	if len(sums) != 2 {
		t.Error(sums)
	}
}

// environment returns the values of the pod's variables.
func environment(t *testing.T, values chartutil.Values) map[string]string {
	t.Helper()
	files, err := rendered(t, "shop", values)
	if err != nil {
		t.Fatal(err)
	}
	var set apps.StatefulSet
	if err := yaml.UnmarshalStrict([]byte(files["walstream/templates/statefulset.yaml"]), &set); err != nil {
		t.Fatal(err)
	}
	container := set.Spec.Template.Spec.Containers[0]
	found := map[string]string{"image": container.Image}
	for _, variable := range container.Env {
		found[variable.Name] = variable.Value
	}
	return found
}

func TestAConfigurationMayBeginWithABlank(t *testing.T) {
	config := "  [sources.app]\nkind = \"postgres\"\n\n    sinks = []\n"
	files, err := rendered(t, "shop", chartutil.Values{"config": config})
	if err != nil {
		t.Fatal(err)
	}
	var made core.ConfigMap
	if err := yaml.UnmarshalStrict([]byte(files["walstream/templates/configmap.yaml"]), &made); err != nil {
		t.Fatal(err)
	}
	if made.Data["walstream.toml"] != config {
		t.Errorf("%q", made.Data["walstream.toml"])
	}
}

func TestTheImageWithSparkIsTakenForEveryTag(t *testing.T) {
	spark := map[string]any{"enabled": true}
	for tag, image := range map[string]string{
		"":          "walstream:" + loaded(t).AppVersion() + "-spark",
		"1.2":       "walstream:1.2-spark",
		"1.2-spark": "walstream:1.2-spark",
	} {
		values := chartutil.Values{"spark": spark, "image": map[string]any{"tag": tag}}
		if found := environment(t, values)["image"]; found != image {
			t.Errorf("%q: %s", tag, found)
		}
	}
	values := chartutil.Values{"image": map[string]any{"tag": "1.2"}}
	if found := environment(t, values)["image"]; found != "walstream:1.2" {
		t.Error(found)
	}
}

func TestAddressesMayBeIPv6(t *testing.T) {
	for address, listen := range map[string]string{
		"0.0.0.0": "0.0.0.0", "::": "[::]", "[fd00::1]": "[fd00::1]",
	} {
		values := chartutil.Values{"listenAddress": address, "metrics": map[string]any{"enabled": true}}
		found := environment(t, values)
		if found["WALSTREAM__HTTP__PROBES"] != listen+":8322" || found["WALSTREAM__HTTP__LISTEN"] != listen+":8321" {
			t.Error(address, found)
		}
	}
}

func TestTheChartIsOfThisRelease(t *testing.T) {
	project, err := os.ReadFile("../../../pyproject.toml")
	if err != nil {
		t.Fatal(err)
	}
	made := loaded(t).Metadata
	if !strings.Contains(string(project), "\nversion = \""+made.AppVersion+"\"\n") || made.Version != made.AppVersion {
		t.Errorf("the chart is %s, of walstream %s", made.Version, made.AppVersion)
	}
}
