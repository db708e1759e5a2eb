package lab

import (
	"errors"
	"fmt"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
)

// generic speaks by generic netlink with parts of the kernel, in one namespace.
type generic struct {
	c        *genetlink.Conn
	families map[string]genetlink.Family
}

// inGeneric calls f with a connection to the namespace of the file descriptor.
func inGeneric(fd int, f func(*generic) error) error {
	c, err := genetlink.Dial(&netlink.Config{NetNS: fd})
	if err != nil {
		return fmt.Errorf("open generic netlink: %w", err)
	}
	return errors.Join(f(&generic{c, map[string]genetlink.Family{}}), c.Close())
}

// execute sends a command to a family: a header of its own, if it has one, and attributes.
func (g *generic) execute(
	family string, command uint8, flags netlink.HeaderFlags, header []byte, attributes func(*netlink.AttributeEncoder),
) ([]genetlink.Message, error) {
	f, known := g.families[family]
	if !known {
		var err error
		if f, err = g.c.GetFamily(family); err != nil {
			return nil, fmt.Errorf("find %s: %w", family, err)
		}
		g.families[family] = f
	}
	e := netlink.NewAttributeEncoder()
	attributes(e)
	body, err := e.Encode()
	if err != nil {
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	message := genetlink.Message{Header: genetlink.Header{Command: command, Version: f.Version}, Data: append(header, body...)}
	return g.c.Execute(message, f.ID, netlink.Request|flags)
}
