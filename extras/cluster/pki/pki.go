// Package pki makes the certificates of a test cluster and the kubeconfigs that hold them. They live as long as the cluster does.
package pki

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
)

// lifetime is how long certificates are good for. The cluster is young when it ends.
const lifetime = 30 * 24 * time.Hour

// serialBits is the length of serial numbers, which are drawn.
const serialBits = 127

// Authority signs the certificates of one cluster.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	encoded     []byte
	now         time.Time
}

// Pair is a certificate and its key, in PEM.
type Pair struct{ Certificate, Key []byte }

// New makes an authority. Its certificates are good from an hour before now, for a month.
func New(now time.Time) (*Authority, error) {
	key, _, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("draw the authority's key: %w", err)
	}
	a := &Authority{key: key, now: now}
	template, err := a.template(pkix.Name{CommonName: "netdelta cluster"})
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("sign the authority's certificate: %w", err)
	}
	a.certificate, err = x509.ParseCertificate(der)
	a.encoded = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a, err
}

func (a *Authority) template(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: a.now.Add(-time.Hour), NotAfter: a.now.Add(lifetime)}, nil
}

// Certificate is the authority's own, in PEM.
func (a *Authority) Certificate() []byte { return a.encoded }

// Client issues a certificate by which the API server knows a user and the groups that it belongs to.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	return a.issue(pkix.Name{CommonName: user, Organization: groups}, x509.ExtKeyUsageClientAuth, nil, nil)
}

// Server issues the certificate of a server with these names and addresses.
func (a *Authority) Server(name string, names []string, addresses []net.IP) (Pair, error) {
	return a.issue(pkix.Name{CommonName: name}, x509.ExtKeyUsageServerAuth, names, addresses)
}

func (a *Authority) issue(subject pkix.Name, usage x509.ExtKeyUsage, names []string, addresses []net.IP) (Pair, error) {
	key, encoded, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	template, err := a.template(subject)
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{usage}
	template.DNSNames, template.IPAddresses = names, addresses
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %s: %w", subject.CommonName, err)
	}
	return Pair{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: encoded}, nil
}

func newKey() (key *ecdsa.PrivateKey, encoded []byte, err error) {
	if encoded, err = SigningKey(); err != nil {
		return nil, nil, err
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(encoded)
	key, _ = parsed.(*ecdsa.PrivateKey) // SigningKey makes no others
	return key, encoded, err
}

// SigningKey draws a key, in PEM, such as the one by which tokens of service accounts are signed.
func SigningKey() ([]byte, error) { return keyutil.MakeEllipticPrivateKeyPEM() }

// Kubeconfig is a file by which a program reaches the API server at an address, https://HOST:PORT, as the user of a certificate.
// It holds the certificate and its key.
func (a *Authority) Kubeconfig(server string, user Pair) ([]byte, error) {
	const name = "netdelta"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: a.encoded}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: user.Certificate, ClientKeyData: user.Key}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	return clientcmd.Write(*c)
}
