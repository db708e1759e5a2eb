package kube

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// WriteManifest prints objects as YAML without what only the API server fills in.
func WriteManifest(w io.Writer, objects ...runtime.Object) error {
	for _, object := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return fmt.Errorf("write the manifest: %w", err)
		}
		delete(fields, "status")
		dropTimes(fields)
		text, err := yaml.Marshal(fields)
		if err != nil {
			return fmt.Errorf("write the manifest: %w", err)
		}
		if _, err = fmt.Fprintf(w, "%s---\n", text); err != nil {
			return err
		}
	}
	return nil
}

// dropTimes removes times of creation, which the types print though there are none.
func dropTimes(fields map[string]any) {
	for name, value := range fields {
		if inner, ok := value.(map[string]any); ok {
			dropTimes(inner)
		}
		if name == "creationTimestamp" && value == nil {
			delete(fields, name)
		}
	}
}
