package kube

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"

	"netdelta/result"
	"netdelta/testbed/kube/client"
	"netdelta/unit"
)

// The greatest sizes of files. A kubeconfig of hundreds of clusters has a few MiB.
const (
	kubeconfigMost = 16 * unit.MiB
	namedMost      = unit.MiB // of a file that a kubeconfig names
)

// kubeconfig loads the files that kubectl would, as its rules say. The library reads whatever it is given up to its end: a pipe is waited for, and
// a device fills the memory.
type kubeconfig struct {
	*clientcmd.ClientConfigLoadingRules
	context string // "" is the current one
	// tokenFile has the token of the context's user; "" where none has it. It is read again while the cluster is used.
	tokenFile string
}

// newKubeconfig takes the path of a file and the name of a context, each of which may be "".
func newKubeconfig(path, context string) *kubeconfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	return &kubeconfig{ClientConfigLoadingRules: rules, context: context}
}

// CurrentContext is the context of a kubeconfig that is used where none is named; path is as in Config.
func CurrentContext(path string) (string, error) {
	c, err := newKubeconfig(path, "").Load()
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	return c.CurrentContext, nil
}

// Load implements clientcmd.ClientConfigLoader. The files that the context names are read with it. What was set by a file is not changed by
// those after it.
func (k *kubeconfig) Load() (*clientcmdapi.Config, error) {
	all := clientcmdapi.NewConfig()
	for _, path := range k.GetLoadingPrecedence() {
		if path == "" {
			continue
		}
		text, err := result.ReadFile(path, kubeconfigMost)
		if errors.Is(err, fs.ErrNotExist) && k.ExplicitPath == "" {
			continue
		}
		if err != nil {
			return nil, err
		}
		one, err := parseKubeconfig(path, text)
		if err != nil {
			return nil, err
		}
		all.CurrentContext = cmp.Or(all.CurrentContext, one.CurrentContext)
		addMissing(all.Clusters, one.Clusters)
		addMissing(all.AuthInfos, one.AuthInfos)
		addMissing(all.Contexts, one.Contexts)
	}
	return all, k.readNamed(all)
}

// addMissing adds to a map what it lacks.
func addMissing[V any](to, from map[string]V) {
	maps.Copy(from, to)
	maps.Copy(to, from)
}

// parseKubeconfig reads the text of a kubeconfig. Files that it names are below its folder.
func parseKubeconfig(path string, text []byte) (*clientcmdapi.Config, error) {
	c, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no kubeconfig: %w", path, err)
	}
	for _, one := range c.Clusters {
		one.LocationOfOrigin = path
	}
	for _, one := range c.AuthInfos {
		one.LocationOfOrigin = path
	}
	for _, one := range c.Contexts {
		one.LocationOfOrigin = path
	}
	if err := clientcmd.ResolveLocalPaths(c); err != nil {
		return nil, fmt.Errorf("%s is no kubeconfig: %w", path, err)
	}
	return c, nil
}

// readNamed puts the content of the files that the context names in their place.
func (k *kubeconfig) readNamed(c *clientcmdapi.Config) error {
	name := cmp.Or(k.context, c.CurrentContext)
	at := c.Contexts[name]
	if at == nil {
		return nil // the library says what is wrong
	}
	read := func(what string, path *string, into *[]byte) error {
		if *path == "" {
			return nil
		}
		if len(*into) > 0 { // the library, which refuses it, would open the file
			return fmt.Errorf("the context %q has two of the %s, itself and the file %s: remove one", name, what, *path)
		}
		text, err := result.ReadFile(*path, namedMost)
		if err != nil {
			return fmt.Errorf("read the %s of the context %q: %w", what, name, err)
		}
		*path, *into = "", text
		return nil
	}
	if cluster := c.Clusters[at.Cluster]; cluster != nil {
		if err := read("authority", &cluster.CertificateAuthority, &cluster.CertificateAuthorityData); err != nil {
			return err
		}
	}
	user := c.AuthInfos[at.AuthInfo]
	if user == nil {
		return nil
	}
	if err := read("certificate", &user.ClientCertificate, &user.ClientCertificateData); err != nil {
		return err
	}
	if err := read("key", &user.ClientKey, &user.ClientKeyData); err != nil {
		return err
	}
	if k.tokenFile = user.TokenFile; k.tokenFile != "" {
		token, err := readToken(k.tokenFile)
		if err != nil {
			return fmt.Errorf("read the token of the context %q: %w", name, err)
		}
		// With a token the library asks nobody else who the user is.
		user.TokenFile, user.Token, user.Exec = "", token, nil
	}
	return nil
}

// readToken reads a file with a token.
func readToken(path string) (string, error) {
	text, err := result.ReadFile(path, namedMost)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return token, nil
}

// tokenFile is a file with a token, which is written anew before the token expires.
type tokenFile string

// tokenAgain is how often a token's file is read.
const tokenAgain = time.Minute

// Token implements oauth2.TokenSource.
func (f tokenFile) Token() (*oauth2.Token, error) {
	token, err := readToken(string(f))
	if err != nil {
		return nil, fmt.Errorf("read the token: %w", err)
	}
	return &oauth2.Token{AccessToken: token, Expiry: time.Now().Add(tokenAgain)}, nil
}

// secure has a configuration read the token's file again and again, and bounds what an API server answers.
func (k *kubeconfig) secure(c *rest.Config) {
	if k.tokenFile != "" && c.BearerToken != "" { // which is sent over TLS alone
		c.BearerToken = ""
		c.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedTokenSource(tokenFile(k.tokenFile))))
	}
	c.Wrap(client.Bounded)
}
