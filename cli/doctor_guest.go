package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/lab/rootless"
	"netdelta/testbed/vm"
	"netdelta/testbed/vm/image"
)

// guestSurvey is what the doctor found inside a guest.
type guestSurvey struct {
	Image    string    `json:"image"`   // its ID
	Program  string    `json:"program"` // the hash of the program that looked: another may need other things
	Findings []finding `json:"findings"`
}

// surveyFile keeps the last survey, in the folder of the images.
const surveyFile = "survey.json"

// guestMend is what to do about what was not tried yet.
const guestMend = "netdelta doctor --guest boots one and looks"

// programHash tells builds of this program apart.
func programHash() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's file: %w", err)
	}
	f, err := os.Open(self)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, f.Close())
}

// lastSurvey is what this program found when it last looked inside a guest of this image, nil where it did not.
func lastSurvey(i image.Image) (*guestSurvey, error) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(i.Dir), surveyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was found in the guest: %w", err)
	}
	var s guestSurvey
	hash, err := programHash()
	if err != nil {
		return nil, err
	}
	// What can't be read, or is of another program or image, is found out anew.
	if json.Unmarshal(text, &s) == nil && s.Image == i.ID() && s.Program == hash {
		return &s, nil
	}
	return nil, nil
}

// lookInside boots a guest and has the doctor look around in it. What it finds is kept.
func (env *environment) lookInside(ctx context.Context) (i image.Image, s *guestSurvey, err error) {
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
	hash, err := programHash()
	if err != nil {
		return i, nil, err
	}
	s = &guestSurvey{Image: i.ID(), Program: hash}
	if err := json.Unmarshal(said.Bytes(), &s.Findings); err != nil {
		return i, nil, fmt.Errorf("look around in a guest: %w", err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return i, nil, err
	}
	// Where it can't be kept it is found out again.
	_ = os.WriteFile(filepath.Join(filepath.Dir(i.Dir), surveyFile), text, 0o644)
	return i, s, nil
}

// guestHere returns the image and the last survey without booting or building anything. The image's folder is "" where there is
// none.
func guestHere() (image.Image, *guestSurvey, error) {
	i, err := image.Glance(image.Options{})
	if errors.Is(err, fs.ErrNotExist) {
		return image.Image{}, nil, nil
	}
	if err != nil {
		return image.Image{}, nil, err
	}
	s, err := lastSurvey(i)
	return i, s, err
}

// examineGuest adds to findings of this machine where the guest differs from it. With look it boots one.
func (env *environment) examineGuest(ctx context.Context, findings []finding, look bool) ([]finding, error) {
	if _, entered := rootless.Entered(); entered {
		return findings, nil // who had it look around from there looks for guests too
	}
	var i image.Image
	var s *guestSurvey
	var err error
	if look {
		i, s, err = env.lookInside(ctx)
	} else {
		i, s, err = guestHere()
	}
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
	if s == nil {
		about.Says, about.Fix = about.Says+"; not looked into with this program", guestMend
		return append(findings, about), nil
	}
	inside := map[string]finding{}
	for _, f := range s.Findings {
		inside[f.Topic] = f
	}
	for k, f := range findings {
		if g, known := inside[f.Topic]; known && strings.HasPrefix(f.Topic, "network ") {
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
		f.Fix = "run it with --testbed vm"
	case f.OK:
		f.Says += ", not in the guest: " + guest.Says
	default:
		f.Says += "; the guest: " + guest.Says
	}
	return f
}

// network returns the finding about a network in the guest, or false if the survey has none. It boots nothing.
func (s *guestSurvey) network(name string) (finding, bool) {
	if s == nil {
		return finding{}, false
	}
	i := slices.IndexFunc(s.Findings, func(f finding) bool { return f.Topic == "network "+name })
	if i < 0 {
		return finding{}, false
	}
	return s.Findings[i], true
}
