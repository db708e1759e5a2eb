// Package kubetest lets tests speak to client-go's fake of an API server, or to all of a real one.
package kubetest

import (
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"netdelta/internal/require"
	"netdelta/testbed/kube/client"
)

// API is netdelta's view of a clientset, which may be a fake.
func API(c kubernetes.Interface) *client.API {
	core, apps := c.CoreV1(), c.AppsV1()
	return &client.API{
		Pods:                     in(core.Pods),
		Nodes:                    core.Nodes(),
		Namespaces:               core.Namespaces(),
		Services:                 in(core.Services),
		Events:                   in(core.Events),
		ConfigMaps:               in(core.ConfigMaps),
		Secrets:                  in(core.Secrets),
		ServiceAccounts:          in(core.ServiceAccounts),
		LimitRanges:              in(core.LimitRanges),
		ResourceQuotas:           in(core.ResourceQuotas),
		PersistentVolumes:        core.PersistentVolumes(),
		PersistentVolumeClaims:   in(core.PersistentVolumeClaims),
		StatefulSets:             in(apps.StatefulSets),
		DaemonSets:               in(apps.DaemonSets),
		Jobs:                     in(c.BatchV1().Jobs),
		NetworkPolicies:          in(c.NetworkingV1().NetworkPolicies),
		StorageClasses:           c.StorageV1().StorageClasses(),
		EndpointSlices:           in(c.DiscoveryV1().EndpointSlices),
		Leases:                   in(c.CoordinationV1().Leases),
		SelfSubjectAccessReviews: c.AuthorizationV1().SelfSubjectAccessReviews(),
		SelfSubjectReviews:       c.AuthenticationV1().SelfSubjectReviews(),
		REST:                     c.Discovery().RESTClient(),
	}
}

// in gives the objects of a kind in a namespace as a client.Resource.
func in[R client.Resource[T, L], T, L any](of func(namespace string) R) func(namespace string) client.Resource[T, L] {
	return func(namespace string) client.Resource[T, L] { return of(namespace) }
}

// All speaks to a cluster of all kinds of objects, also of those that netdelta does not use.
func All(t testing.TB, c *rest.Config) kubernetes.Interface {
	t.Helper()
	all, err := kubernetes.NewForConfig(c)
	require.NoError(t, err)
	return all
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
