package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"netdelta/extras/cluster/pki"
)

// A client with a kubeconfig reaches a server of the same authority, and each knows the other.
func TestKubeconfigReachesServer(t *testing.T) {
	a, err := pki.New(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := a.Server("kube-apiserver", nil, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.Certificate()) {
		t.Fatal("the authority's certificate is none")
	}
	var user, group string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		user, group = subject.CommonName, subject.Organization[0]
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	defer server.Close()

	client, err := a.Client("system:node:w1", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	file, err := a.Kubeconfig(server.URL, client)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if user != "system:node:w1" || group != "system:nodes" {
		t.Errorf("the server saw %q of %q, want system:node:w1 of system:nodes", user, group)
	}
}
