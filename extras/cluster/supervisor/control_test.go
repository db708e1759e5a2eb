package supervisor

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
)

// TestOrders gives orders to a supervisor whose nodes are not there: what it refuses, and what there is nothing to do for.
func TestOrders(t *testing.T) {
	f := Folder(t.TempDir())
	if _, err := f.Status(); !errors.Is(err, ErrDown) {
		t.Errorf("without a supervisor: %v", err)
	}
	config := Config{Workers: 1, IPv6: true}.complete()
	s := &supervisor{folder: f, config: config, members: []*member{{name: "cp"}, {name: "w1", number: 1}}}
	l, err := net.Listen("unix", f.control())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	up := make(chan struct{})
	close(up)
	go s.serve(l, up)
	if got, err := f.Status(); got != config || err != nil {
		t.Errorf("status %+v, %v, want %+v", got, err, config)
	}
	if err := f.Switch(config); err != nil {
		t.Errorf("a change to what there is: %v", err)
	}
	for _, c := range []struct {
		do   func() error
		want string
	}{
		{func() error { return f.Switch(Config{CNI: FlannelVXLAN}) }, "unsupported: flannel-vxlan with IPv6"},
		{func() error { return f.Service("stop", "w2", "kubelet") }, "did you mean w1?"},
		{func() error { return f.Service("stop", "w1", "kublet") }, "did you mean kubelet?"},
		{func() error { return f.Service("stop", "w1", "etcd") }, `unknown service "etcd"`},
		{func() error { return f.Service("stop", "w1", "flanneld") }, `unknown service "flanneld"`},
		{func() error { return f.Service("halt", "w1", "kubelet") }, `unknown order "halt"`},
		{func() error { return f.Load("no-such-archive") }, os.ErrNotExist.Error()},
	} {
		if err := c.do(); err == nil || !strings.Contains(err.Error(), c.want) && c.want != os.ErrNotExist.Error() {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}

func TestRunning(t *testing.T) {
	for _, c := range []struct {
		config Config
		number int
		want   string
	}{
		{Config{}.complete(), 1, "containerd kubelet kube-proxy"},
		{Config{CNI: FlannelHostGW, Policy: KubeNetworkPolicies}, 1, "containerd kubelet kube-proxy flanneld kube-network-policies"},
		{Config{}.complete(), 0, "containerd kubelet kube-proxy etcd kube-apiserver kube-controller-manager kube-scheduler coredns"},
	} {
		s := &supervisor{config: c.config}
		if got := strings.Join(s.running(&member{name: "n", number: c.number}), " "); got != c.want {
			t.Errorf("node %d of %+v runs %s, want %s", c.number, c.config, got, c.want)
		}
	}
}
