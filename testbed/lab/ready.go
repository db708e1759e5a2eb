package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
)

const (
	// readyPatience is how long the kernel may take to notice that links are up; usually it is a millisecond.
	readyPatience = 10 * time.Second
	readyPause    = 500 * time.Microsecond
)

// ready waits until all devices are up. Until then they drop what they should send, bridges don't forward, and the first
// request of a trial would come a second late.
func (b *builder) ready(ctx context.Context) error {
	deadline := time.Now().Add(readyPatience)
	for where, names := range b.expected {
		s, err := b.in(where)
		if err != nil {
			return err
		}
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			down, err := s.firstDown(names)
			if err != nil {
				return err
			}
			if down == "" {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("device %s in %s did not come up within %s", down, s.name, readyPatience)
			}
			time.Sleep(readyPause)
		}
	}
	return nil
}

// firstDown is one of the named devices that is not up, "" if all are.
func (s *space) firstDown(names map[string]bool) (string, error) {
	links, err := s.links()
	if err != nil {
		return "", err
	}
	up := 0
	for _, l := range links {
		a := l.Attrs()
		if !names[a.Name] {
			continue
		}
		if a.OperState != netlink.OperUp {
			return a.Name, nil
		}
		up++
	}
	if up != len(names) {
		return "", fmt.Errorf("%s has %d of the %d devices that were made", s.name, up, len(names))
	}
	return "", nil
}
