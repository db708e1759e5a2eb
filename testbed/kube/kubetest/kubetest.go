// Package kubetest lets tests speak to an API server that only keeps objects, and do with a real one what netdelta does not.
package kubetest

import (
	"context"
	"strings"

	"netdelta/testbed/kube/client"
)

// Evict has a pod evicted.
func Evict(ctx context.Context, api *client.API, namespace, name string) error {
	eviction := `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "` + name + `"}}`
	return api.REST.Post().Namespace(namespace).Resource("pods").Name(name).SubResource("eviction").SetHeader("Content-Type", "application/json").
		Body([]byte(eviction)).Do(ctx).Error()
}

// crashing is the product's own agent on each node, with what it refuses: it ends, and is started again and again. It has no rights on its node.
const crashing = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: PRODUCT}
spec:
  minReadySeconds: 60
  selector: {matchLabels: {app: PRODUCT}}
  template:
    metadata: {labels: {app: PRODUCT}}
    spec:
      hostNetwork: true
      terminationGracePeriodSeconds: 0
      containers:
        - name: PRODUCT
          image: localhost/netdelta/base:1
          imagePullPolicy: Never
          command: [sh, -c, 'COMMAND']
          env: [{name: NODENAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
          volumeMounts:
            - {name: programs, mountPath: /opt/netdelta}
            - {name: settings, mountPath: /etc/kubernetes}
      volumes:
        - {name: programs, hostPath: {path: /opt/netdelta}}
        - {name: settings, hostPath: {path: /etc/kubernetes}}
`

// Crashing is the manifest of a DaemonSet named after a product, flannel, calico or cilium, whose agent ends as soon as it has read its
// configuration, on a node of make cluster-up with the product's programs; and the end of its last words.
func Crashing(product string) (manifest, says string) {
	command := ""
	switch product {
	case "flannel":
		command = `echo "{\"Network\": \"10.244.0.0/16\", \"Backend\": {\"Type\": \"vxlam\"}}" >/tmp/net-conf.json; NODE_NAME=$NODENAME exec /opt/netdelta/bin/flanneld ` +
			`--kube-subnet-mgr --kubeconfig-file=/etc/kubernetes/cni.kubeconfig --iface=eth0 --net-config-path=/tmp/net-conf.json`
		says = "unknown backend type: vxlam"
	case "calico":
		command = `AS=6451x DATASTORE_TYPE=kubernetes KUBECONFIG=/etc/kubernetes/cni.kubeconfig exec /opt/netdelta/cni/calico-node -startup`
		says = "The AS number specified in the environment (AS=6451x) is not valid"
	case "cilium":
		command = `exec /opt/netdelta/cni/cilium-agent --k8s-kubeconfig-path=/etc/kubernetes/cni.kubeconfig --ipv4-native-routing-cidr=10.244.0.0/33`
		says = "Unable to parse CIDR '10.244.0.0/33'"
	}
	return strings.NewReplacer("PRODUCT", product, "COMMAND", command).Replace(crashing), says
}
