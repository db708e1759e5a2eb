// Package ssh opens testbeds whose nodes are the user's own servers. The system's own ssh carries the conversation with each: it knows the
// user's configuration, keys, agents, jump hosts and known hosts. Nothing is installed: the small program is sent to a private folder,
// and is gone at the end.
package ssh

import (
	"fmt"
	"strconv"
	"strings"
)

// Prefix begins the name of a server where nodes are named: "ssh:[user@]host[:port]".
const Prefix = "ssh:"

// Node is a server.
type Node struct {
	// Host is the name that ssh takes, with the user where one is given: an alias of the user's configuration, a name or an address.
	Host string
	// Port is 0 where it is left to the configuration.
	Port int
}

// String is how the user named it.
func (n Node) String() string {
	if n.Port == 0 {
		return n.Host
	}
	if strings.Contains(n.Address(), ":") {
		user, _, _ := strings.Cut(n.Host, n.Address())
		return fmt.Sprintf("%s[%s]:%d", user, n.Address(), n.Port)
	}
	return fmt.Sprintf("%s:%d", n.Host, n.Port)
}

// Address is the host without the user.
func (n Node) Address() string { return n.Host[strings.LastIndex(n.Host, "@")+1:] }

// ParseNodes reads a list of servers, separated by commas.
func ParseNodes(list string) (nodes []Node, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := parseNode(text)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func parseNode(text string) (n Node, err error) {
	rest, is := strings.CutPrefix(text, Prefix)
	fail := func(why string) (Node, error) {
		return Node{}, fmt.Errorf("node %q: %s; a server is named as ssh:[user@]host[:port], an IPv6 address with a port as ssh:[fd00::1]:22", text, why)
	}
	if !is {
		return fail("it does not begin with " + Prefix)
	}
	n.Host = rest
	user, address := "", rest
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		user, address = rest[:i+1], rest[i+1:]
	}
	port := ""
	if inner, bracketed := strings.CutPrefix(address, "["); bracketed {
		var after string
		if address, after, is = strings.Cut(inner, "]"); !is || after != "" && !strings.HasPrefix(after, ":") {
			return fail("its brackets are not closed")
		}
		port = strings.TrimPrefix(after, ":")
	} else if strings.Count(address, ":") == 1 {
		address, port, _ = strings.Cut(address, ":")
	}
	if n.Host = user + address; address == "" || strings.HasPrefix(n.Host, "-") || strings.ContainsAny(n.Host, " \t\n'\"\\$`;|&<>()") {
		return fail("that is no name of a host")
	}
	if port != "" {
		if n.Port, err = strconv.Atoi(port); err != nil || n.Port < 1 || n.Port > 65535 {
			return fail("the port is no number from 1 to 65535")
		}
	}
	return n, nil
}
