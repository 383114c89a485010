// Package kubernetes reads manifests as the API server does, strictly, and checks what no
// schema says: names that have to lead to something.
package kubernetes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

var decoder = strictDecoder()

func strictDecoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apps.AddToScheme, core.AddToScheme, networking.AddToScheme,
		policy.AddToScheme, monitoring.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	options := json.SerializerOptions{Yaml: true, Strict: true}
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, options)
}

// Decode reads the documents of a manifest into the API's own types. An unknown field, a
// field given twice, or an unknown kind is an error.
func Decode(manifest []byte) ([]runtime.Object, error) {
	var objects []runtime.Object
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if empty(document) {
			continue
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%w in:\n%s", err, document)
		}
		objects = append(objects, object)
	}
}

func empty(document []byte) bool {
	for line := range strings.Lines(string(document)) {
		line = strings.TrimSpace(line)
		if line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}
