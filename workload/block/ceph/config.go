// Package ceph is a small Ceph cluster, as a store of the workload block: a monitor and OSDs in a pod each, three as a
// rule, which keep every block three times, with their data in memory. What all pods have to agree on follows from their addresses, so that each
// starts its daemons by itself.
package ceph

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"netdelta/internal/daemon"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/fio"
)

// Names within the cluster.
const (
	Pool  = "rbd"
	Image = "blocks"
	// User is the client's name. No client has to authenticate.
	User = "admin"
)

// Sizes. Every OSD keeps a copy of the whole image.
const (
	// ImageSize is the size of the image that clients read and write. All of it is written before they come: what was never written
	// is read without a disk.
	ImageSize = 256 * unit.MiB
	// deviceSize is the size of the file that an OSD takes for its disk: an image, its journal and its database.
	deviceSize = 640 * unit.MiB
	// homeSize is what an OSD's pod may put into memory; the file, and in the first pod the monitor's store.
	homeSize = 768 * unit.MiB
	// processes is the memory that daemons take for themselves at most, in all pods together.
	processes = unit.GiB
)

// fsid identifies the cluster. Clusters never meet, so that all can have the same.
const fsid = "6e657464-656c-7461-0000-000000000000"

// monitorPort is the port of version 2 of Ceph's protocol, in a cluster of the usual number of OSDs; clusters of other numbers, which may share
// its pods, have the ports around it.
const monitorPort = 3300

// folder is where everything of Ceph is in a home.
const folder = "ceph"

// places says how the programs in a home call its files.
type places func(name ...string) string

// of is a file of Ceph's.
func (p places) of(name string) string { return p(folder, name) }

// place is a file of a home, as the programs in it call it.
func place(h *daemon.Sandbox, name string) string { return places(h.Path).of(name) }

// osdUUID identifies the disk of an OSD.
func osdUUID(id int) string { return fmt.Sprintf("%s%x", fsid[:len(fsid)-1], id+1) }

// monitorAddress is the monitor's as Ceph writes it, with its brackets.
func monitorAddress(peers []netip.Addr) string {
	return fmt.Sprintf("[v2:%s]", netip.AddrPortFrom(peers[0], uint16(monitorPort-OSDs+len(peers))))
}

// globalText is the configuration of all. Daemons say what they have to say on their standard error, and only what is wrong: the parts
// of Ceph that would fill the log with what is normal are quiet.
//
//go:embed files/global.conf
var globalText string

// daemonsText is what a monitor and an OSD have to know. An OSD takes little memory (RocksDB keeps one set of buffers instead of a dozen,
// and placement groups short logs), and makes do with few threads: processors are few. Networks are swapped beneath the cluster: no daemon
// is taken for dead that is silent for less than a minute, and nothing is copied elsewhere when one is. A process that died is found at
// once, by the connection that is refused.
//
//go:embed files/daemons.conf
var daemonsText string

// config is the configuration of a pod's daemons, and of clients.
func config(in places, peers []netip.Addr, pod int) []byte {
	text := filled(globalText, "{fsid}", fsid, "{monitor}", monitorAddress(peers), "{ipv4}", strconv.FormatBool(peers[0].Is4()),
		"{ipv6}", strconv.FormatBool(peers[0].Is6()), "{folder}", in.of(""), "{socket}", in.of("$name.asok"))
	if pod >= 0 {
		text += filled(daemonsText, "{monitor data}", in.of("mon"), "{size}", strconv.Itoa(min(copies, len(peers))),
			"{least}", strconv.Itoa(min(2, len(peers))), "{address}", peers[pod].String(), "{osd data}", in.of("osd"), "{number}", strconv.Itoa(pod),
			"{device}", strconv.FormatInt(int64(deviceSize), 10))
	}
	return []byte(text)
}

// filled is a text with words in the places of names.
func filled(text string, words ...string) string { return strings.NewReplacer(words...).Replace(text) }

// groups is how many placement groups the image's pool has: enough to spread it evenly, few enough to be ready at once.
const groups = 32

// filling is the block size with which the image is filled, the size of its objects.
const filling = 4 * unit.MiB

// makeImage makes the image, and writes all of it. Writes wait until the cluster can carry them out, which is when as many OSDs
// take part as copies are kept.
func makeImage(ctx context.Context, h *daemon.Sandbox) error {
	count := strconv.Itoa(groups)
	for _, step := range [][]string{
		{"ceph", "osd", "pool", "create", Pool, count, count},
		{"rbd", "create", "--size", mebibytes(ImageSize), Pool + "/" + Image},
		{
			"rbd", "bench", "--io-type", "write", "--io-pattern", "seq", "--io-threads", "4",
			"--io-size", mebibytes(filling), "--io-total", mebibytes(ImageSize), Pool + "/" + Image,
		},
	} {
		_, err := run(ctx, h, step[0], step[1:]...)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("make an image of %v, with its copies, in a Ceph cluster: it is not done in time; give slow links a higher rate: %w", ImageSize, err)
		case err != nil:
			return fmt.Errorf("make an image of %v in a Ceph cluster: %w", ImageSize, err)
		}
	}
	return nil
}

// mebibytes is a size as Ceph's programs take it.
func mebibytes(size unit.Bytes) string { return fmt.Sprintf("%dM", int64(size/unit.MiB)) }

// Engine is fio's, for images of Ceph.
const Engine = "rbd"

// Attach readies a client's home, sees that the image is there, and says how fio reaches it.
func Attach(ctx context.Context, h *daemon.Sandbox, at workload.Member) (fio.Target, error) {
	fail := func(err error) (fio.Target, error) {
		return fio.Target{}, fmt.Errorf("reach the Ceph cluster whose monitor is at %s: %w", monitorAddress(at.Peers), err)
	}
	if err := check(at.Peers); err != nil {
		return fio.Target{}, fmt.Errorf("reach a Ceph cluster: %w", err)
	}
	if err := h.Write(folder+"/ceph.conf", config(h.Path, at.Peers, -1), 0o644, ""); err != nil {
		return fail(err)
	}
	if err := Whole(ctx, h); err != nil {
		return fail(err)
	}
	return fio.Target{
		Engine:  Engine,
		Options: []string{"clientname=" + User, "pool=" + Pool, "rbdname=" + Image},
		Env:     environment(h),
	}, nil
}

// Whole returns an error unless all of the image is there, as it was filled. The home is a client's that Attach has readied.
func Whole(ctx context.Context, h *daemon.Sandbox) error {
	text, err := run(ctx, h, "rbd", "diff", "--format", "json", Pool+"/"+Image)
	if err != nil {
		return err
	}
	var extents []struct {
		Length unit.Bytes `json:"length"`
	}
	if err := json.Unmarshal(text, &extents); err != nil {
		return fmt.Errorf("what rbd says of the image: %w: %.200q", err, text)
	}
	var there unit.Bytes
	for _, e := range extents {
		there += e.Length
	}
	if there != ImageSize {
		return fmt.Errorf("of its image %v are there, where %v were written: what was measured since is not of the same data", there, ImageSize)
	}
	return nil
}
