package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"netdelta/internal/gather"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/lab/rootless"
	"netdelta/testbed/vm"
	"netdelta/testbed/vm/image"
)

// guestMend is what to do about what was not tried yet.
const guestMend = "netdelta doctor --guest boots one and looks"

// lookInside boots a guest and has the doctor look around in it. What it finds is kept.
func (env *environment) lookInside(ctx context.Context) (i image.Image, found []finding, err error) {
	if i, err = env.buildImage(ctx, false); err != nil {
		return i, nil, err
	}
	m := vm.Machine{}
	if !i.Missing(image.Cards) {
		m.Cards = 2 // for networks that need a card with virtual functions
	}
	g, err := vm.Boot(ctx, i, m)
	if err != nil {
		return i, nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	var said bytes.Buffer
	p, err := g.Exec(ctx, vm.Command{Path: "/netdelta", Args: []string{"doctor", "--json"}, Env: []string{lab.CardsVariable + "=" + lab.AllCards}, Stdout: &said})
	if err != nil {
		return i, nil, err
	}
	if err := errors.Join(p.CloseWrite(), p.Wait()); err != nil {
		return i, nil, fmt.Errorf("look around in a guest: %w", err)
	}
	if err := json.Unmarshal(said.Bytes(), &found); err != nil {
		return i, nil, fmt.Errorf("look around in a guest: %w", err)
	}
	return i, found, i.KeepSurvey(said.Bytes())
}

// guestHere returns the image and what was last found in it, nil for nothing, without booting or building anything. The image's folder is
// "" where there is none.
func guestHere() (i image.Image, found []finding, err error) {
	i, err = image.Glance(image.Options{})
	if errors.Is(err, fs.ErrNotExist) {
		return image.Image{}, nil, nil
	}
	if err == nil {
		_, err = i.Survey(&found)
	}
	return i, found, err
}

// examineGuest adds to findings of this machine where the guest differs from it. With look it boots one.
func (env *environment) examineGuest(ctx context.Context, findings []finding, look bool) ([]finding, error) {
	if _, entered := rootless.Entered(); entered {
		return findings, nil // who had it look around from there looks for guests too
	}
	looked := guestHere
	if look {
		looked = func() (image.Image, []finding, error) { return env.lookInside(ctx) }
	}
	i, found, err := looked()
	about := finding{Topic: "guest"}
	damaged, broken := errors.AsType[*image.DamagedError](err)
	switch {
	case errors.Is(err, testbed.ErrUnsupported):
		return append(findings, tried(about.Topic, "", err)), nil
	case broken:
		about.Says, about.Fix = damaged.Why, "netdelta vm build"
		return append(findings, about), nil
	case err != nil:
		return nil, err
	case i.Dir == "":
		about.Says, about.Fix = "none is built: what this kernel lacks would run in one", "netdelta vm build, then --testbed vm"
		return append(findings, about), nil
	}
	about.OK, about.Says = true, fmt.Sprintf("kernel %s, QEMU %s of %s", i.Kernel, i.QEMU, i.Suite)
	for _, l := range i.Lacks {
		about.Says += "; lacks " + l
	}
	if found == nil {
		about.Says, about.Fix = about.Says+"; not looked into with this program", guestMend
		return append(findings, about), nil
	}
	for k, f := range findings {
		if g, known := ofNetwork(found, strings.TrimPrefix(f.Topic, "network ")); known && g.Topic == f.Topic {
			findings[k] = f.with(g)
		}
	}
	return append(findings, about), nil
}

// with adds to what is known of a network here what is known of it in the guest.
func (f finding) with(guest finding) finding {
	switch {
	case f.OK && guest.OK:
		f.Says += ", and in the guest"
	case guest.OK:
		f.Says += "; runs in the guest"
		f.Fix = testbed.GuestFix
	case f.OK:
		f.Says += ", not in the guest: " + guest.Says
	default:
		f.Says += "; the guest: " + guest.Says
	}
	return f
}

// ofNetwork returns the finding about a network, false where there is none.
func ofNetwork(all []finding, name string) (finding, bool) {
	return gather.First(all, func(f finding) bool { return f.Topic == "network "+name })
}
