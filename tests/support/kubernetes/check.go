package kubernetes

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	user             = 10001 // of the image
	shutdownTimeoutS = 20    // walstream's default
)

var secretFile = regexp.MustCompile(`(?:\{file:|")(/run/secrets/[^"'\s}]+)|=(/run/secrets/[^"'\s}]+)`)

// Instance is what makes one walstream run.
type Instance struct {
	Set      *apps.StatefulSet
	services []*core.Service
	configs  map[string]*core.ConfigMap
	others   []runtime.Object
	external map[string]bool // ConfigMaps that exist already
	problems []string
}

// Check returns what is wrong with the objects together; `external` are ConfigMaps that
// are not among them.
func Check(objects []runtime.Object, external ...string) []string {
	one := Instance{configs: map[string]*core.ConfigMap{}, external: map[string]bool{}}
	for _, name := range external {
		one.external[name] = true
	}
	for _, object := range objects {
		one.add(object)
	}
	if one.Set == nil {
		return append(one.problems, "no StatefulSet")
	}
	one.checkSet()
	one.checkContainer()
	one.checkVolumes()
	one.checkServices()
	one.checkOthers()
	return one.problems
}

func (one *Instance) say(format string, arguments ...any) {
	one.problems = append(one.problems, fmt.Sprintf(format, arguments...))
}

func (one *Instance) add(object runtime.Object) {
	named := object.(meta.Object)
	for _, wrong := range validation.IsDNS1123Subdomain(named.GetName()) {
		one.say("name %q: %s", named.GetName(), wrong)
	}
	one.checkLabels(named.GetLabels())
	switch found := object.(type) {
	case *apps.StatefulSet:
		if one.Set != nil {
			one.say("two StatefulSets")
		}
		one.Set = found
	case *core.Service:
		one.services = append(one.services, found)
	case *core.ConfigMap:
		one.configs[found.Name] = found
	default:
		one.others = append(one.others, object)
	}
}

func (one *Instance) checkLabels(given map[string]string) {
	for key, value := range given {
		for _, wrong := range append(
			validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...) {
			one.say("label %s=%s: %s", key, value, wrong)
		}
	}
}

func (one *Instance) checkSet() {
	spec := one.Set.Spec
	if spec.Replicas == nil || *spec.Replicas != 1 {
		one.say("replicas is not 1")
	}
	one.checkLabels(spec.Template.Labels)
	if !one.selects("the StatefulSet", spec.Selector) {
		return
	}
	pod := spec.Template.Spec
	if grace := pod.TerminationGracePeriodSeconds; grace == nil || *grace <= shutdownTimeoutS {
		one.say("terminationGracePeriodSeconds is not above %d", shutdownTimeoutS)
	}
	if mounts := pod.AutomountServiceAccountToken; mounts == nil || *mounts {
		one.say("a service account's token is mounted")
	}
	context := pod.SecurityContext
	switch {
	case context == nil:
		one.say("the pod has no securityContext")
	case !is(context.RunAsNonRoot) || !equals(context.RunAsUser, user) ||
		!equals(context.RunAsGroup, user) || !equals(context.FSGroup, user):
		one.say("the pod does not run as the image's user")
	case context.SeccompProfile == nil ||
		context.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault:
		one.say("seccompProfile is not RuntimeDefault")
	}
}

// selects returns whether a selector takes the pod.
func (one *Instance) selects(who string, selector *meta.LabelSelector) bool {
	made, err := meta.LabelSelectorAsSelector(selector)
	if err != nil || made.Empty() || !made.Matches(labels.Set(one.Set.Spec.Template.Labels)) {
		one.say("the selector of %s does not take the pod", who)
		return false
	}
	return true
}

func (one *Instance) container() *core.Container {
	return &one.Set.Spec.Template.Spec.Containers[0]
}

func (one *Instance) checkContainer() {
	if len(one.Set.Spec.Template.Spec.Containers) != 1 {
		one.say("not one container")
		return
	}
	container := one.container()
	context := container.SecurityContext
	if context == nil || !is(context.ReadOnlyRootFilesystem) ||
		context.AllowPrivilegeEscalation == nil || *context.AllowPrivilegeEscalation ||
		context.Capabilities == nil || len(context.Capabilities.Add) > 0 ||
		!slices.Contains(context.Capabilities.Drop, "ALL") {
		one.say("the container has privileges")
	}
	if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Memory().IsZero() {
		one.say("memory is not bounded")
	}
	for _, port := range container.Ports {
		for _, wrong := range validation.IsValidPortName(port.Name) {
			one.say("port %q: %s", port.Name, wrong)
		}
	}
	if len(container.Command) > 0 { // it waits, and serves nothing
		return
	}
	one.checkProbe("startup", container.StartupProbe, "/health")
	one.checkProbe("liveness", container.LivenessProbe, "/health") // no outage fails it
	one.checkProbe("readiness", container.ReadinessProbe, "/ready")
	address := one.variable("WALSTREAM__HTTP__PROBES")
	if port := one.port("probes"); !strings.HasSuffix(address, fmt.Sprintf(":%d", port)) {
		one.say("probes are served at %q, and asked for at port %d", address, port)
	}
}

func (one *Instance) checkProbe(which string, probe *core.Probe, where string) {
	switch {
	case probe == nil || probe.HTTPGet == nil:
		one.say("no %s probe", which)
	case probe.HTTPGet.Path != where:
		one.say("the %s probe asks for %s", which, probe.HTTPGet.Path)
	case probe.HTTPGet.Port.Type != intstr.String || one.port(probe.HTTPGet.Port.StrVal) == 0:
		one.say("the %s probe goes to no port: %s", which, probe.HTTPGet.Port.String())
	}
}

func (one *Instance) port(name string) int32 {
	for _, port := range one.container().Ports {
		if port.Name == name {
			return port.ContainerPort
		}
	}
	return 0
}

func (one *Instance) variable(name string) string {
	for _, found := range one.container().Env {
		if found.Name == name {
			return found.Value
		}
	}
	return ""
}

func (one *Instance) checkVolumes() {
	known := map[string]bool{} // and mounted
	config, secrets := "", []string{}
	for _, claim := range one.Set.Spec.VolumeClaimTemplates {
		known[claim.Name] = false
		if len(claim.Spec.AccessModes) != 1 || claim.Spec.Resources.Requests.Storage().IsZero() {
			one.say("the claim %s has no size, or no one mode", claim.Name)
		}
	}
	volumes := map[string]core.Volume{}
	for _, volume := range one.Set.Spec.Template.Spec.Volumes {
		if _, twice := known[volume.Name]; twice {
			one.say("two volumes %s", volume.Name)
		}
		known[volume.Name] = false
		volumes[volume.Name] = volume
	}
	places := []string{}
	for _, mount := range one.container().VolumeMounts {
		if _, there := known[mount.Name]; !there {
			one.say("no volume %s to mount", mount.Name)
		}
		known[mount.Name] = true
		for _, other := range places {
			if inside(mount.MountPath, other) || inside(other, mount.MountPath) {
				one.say("%s and %s are one in the other", mount.MountPath, other)
			}
		}
		places = append(places, mount.MountPath)
		volume := volumes[mount.Name]
		if volume.Secret != nil {
			secrets = append(secrets, mount.MountPath)
			if volume.Secret.DefaultMode == nil || *volume.Secret.DefaultMode&0o007 != 0 {
				one.say("the secret %s is for all to read", volume.Secret.SecretName)
			}
		}
		if volume.ConfigMap != nil && mount.MountPath == "/etc/walstream" {
			config = volume.ConfigMap.Name
		}
		if mount.Name == "state" && mount.MountPath != one.variable("WALSTREAM__STATE") {
			one.say("the state is not on its volume")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !known[name] {
			one.say("the volume %s is not mounted", name)
		}
	}
	if _, there := known["state"]; !there {
		one.say("no volume for the state")
	}
	one.checkConfig(config, secrets)
}

// inside returns whether a path is below another: the runtime cannot make its folder there.
func inside(place, other string) bool {
	return place == other || strings.HasPrefix(place, strings.TrimSuffix(other, "/")+"/")
}

// checkConfig sees that each secret which the configuration names is mounted.
func (one *Instance) checkConfig(name string, secrets []string) {
	if one.external[name] {
		return
	}
	config, there := one.configs[name]
	if !there {
		one.say("no ConfigMap %q", name)
		return
	}
	text, there := config.Data["walstream.toml"]
	if !there {
		one.say("the ConfigMap has no walstream.toml")
	}
	for _, variable := range one.container().Env {
		text += "\n" + variable.Value
	}
	for _, found := range secretFile.FindAllStringSubmatch(text, -1) {
		file := found[1] + found[2]
		if !slices.Contains(secrets, path.Dir(file)) {
			one.say("%s is not mounted", file)
		}
	}
}

func (one *Instance) checkServices() {
	headless := false
	for _, service := range one.services {
		one.selects("the Service "+service.Name, &meta.LabelSelector{
			MatchLabels: service.Spec.Selector,
		})
		if service.Name == one.Set.Spec.ServiceName {
			headless = service.Spec.ClusterIP == core.ClusterIPNone
		}
		for _, port := range service.Spec.Ports {
			if port.TargetPort.Type == intstr.String && one.port(port.TargetPort.StrVal) == 0 {
				one.say("the Service %s leads to no port %s", service.Name, port.TargetPort.StrVal)
			}
		}
	}
	if !headless {
		one.say("no headless Service %q", one.Set.Spec.ServiceName)
	}
}

func (one *Instance) checkOthers() {
	for _, other := range one.others {
		switch found := other.(type) {
		case *policy.PodDisruptionBudget:
			one.selects("the PodDisruptionBudget", found.Spec.Selector)
		case *networking.NetworkPolicy:
			one.selects("the NetworkPolicy", &found.Spec.PodSelector)
		case *monitoring.ServiceMonitor:
			one.checkMonitor(found)
		default:
			one.say("nothing is known of %T", other)
		}
	}
}

func (one *Instance) checkMonitor(monitor *monitoring.ServiceMonitor) {
	selector, err := meta.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		one.say("the selector of the ServiceMonitor: %s", err)
		return
	}
	taken := []*core.Service{}
	for _, service := range one.services {
		if selector.Matches(labels.Set(service.Labels)) {
			taken = append(taken, service)
		}
	}
	if len(taken) != 1 {
		one.say("the ServiceMonitor takes %d Services, not one", len(taken))
		return
	}
	if job := taken[0].Labels[monitor.Spec.JobLabel]; !strings.HasPrefix(job, "walstream") {
		one.say("the job is %q: the alert rules do not find it", job)
	}
	for _, endpoint := range monitor.Spec.Endpoints {
		if !slices.ContainsFunc(taken[0].Spec.Ports, func(port core.ServicePort) bool {
			return port.Name == endpoint.Port
		}) {
			one.say("the ServiceMonitor asks at no port: %s", endpoint.Port)
		}
		if endpoint.Authorization == nil || endpoint.Authorization.Credentials == nil {
			one.say("the ServiceMonitor sends no token")
		}
	}
}

func is(value *bool) bool { return value != nil && *value }

func equals(value *int64, wanted int64) bool { return value != nil && *value == wanted }
