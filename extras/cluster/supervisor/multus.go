package supervisor

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"netdelta/extras/cluster/node"
)

const (
	serviceMultus = "multus"
	// multusConf is read before the cluster's own: the runtime takes the first by name.
	multusConf = cniConf + "/00-multus.conf"
	// sharedFolder is one that all nodes see, so that the plugin host-local gives each address of a network once.
	sharedFolder = "/run/cni/addresses"

	multusGroup = "/apis/k8s.cni.cncf.io/v1"
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

// multusFile has Multus attach pods to the network of a conflist first, and then to those that they ask for.
func multusFile(first node.File) (node.File, error) {
	content, err := json.MarshalIndent(map[string]any{
		"cniVersion": "0.3.1", "name": "multus", "type": "multus", "kubeconfig": kubeconfigOf(serviceMultus), "binDir": cniPlugins,
		"capabilities": map[string]bool{"portMappings": true}, "delegates": []json.RawMessage{first.Content},
	}, "", "  ")
	return node.File{Path: multusConf, Mode: 0o600, Content: append(content, '\n')}, err
}

// definition is the kind NetworkAttachmentDefinition, as https://github.com/k8snetworkplumbingwg/multi-net-spec has it.
//
//go:embed files/multus.json
var definition []byte

// define makes the kind of object that describes secondary networks, unless it is there, and waits until it can be used.
func (s *supervisor) define(ctx context.Context) error {
	api := s.api.CoreV1().RESTClient()
	err := api.Post().AbsPath(definitions).SetHeader("Content-Type", "application/json").Body(definition).Do(ctx).Error()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("define secondary networks: %w", err)
	}
	return until(ctx, "secondary networks to be known", func(ctx context.Context) error {
		var status int
		err := api.Get().AbsPath(multusGroup, "network-attachment-definitions").Do(ctx).StatusCode(&status).Error()
		if err == nil && status != http.StatusOK {
			return fmt.Errorf("the API server answers %d", status)
		}
		return err
	})
}

// cniFiles configure the plugins of a node.
func (m *member) cniFiles(c CNI, multus Multus) ([]node.File, error) {
	conf, err := c.conflist(m.prefixes()...)
	if err != nil || multus != MultusOn {
		return []node.File{conf}, err
	}
	before, err := multusFile(conf)
	return []node.File{conf, before}, err
}

// switchMultus has Multus attach pods from now on, or no longer. Pods live on; what describes networks stays.
func (s *supervisor) switchMultus(ctx context.Context, multus Multus) error {
	if multus == MultusOn {
		if err := s.define(ctx); err != nil {
			return err
		}
	}
	return s.each(func(m *member) error {
		files, err := m.cniFiles(s.config.CNI, multus)
		if err != nil {
			return err
		}
		if multus == MultusOff {
			if _, err := m.node.Run("rm", "-f", multusConf); err != nil {
				return err
			}
		}
		return m.node.Write(files...)
	})
}
