package ceph

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"netdelta/internal/daemon"
	"netdelta/unit"
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

// monitorPort is the port of version 2 of Ceph's protocol.
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
	return fmt.Sprintf("[v2:%s]", netip.AddrPortFrom(peers[0], monitorPort))
}

// quiet are the parts of Ceph that would fill the log with what is normal.
func quiet() []string {
	return []string{
		"none", "asok", "auth", "bdev", "bluefs", "bluestore", "client", "crush", "finisher", "heartbeatmap", "journal", "leveldb", "mgrc",
		"mon", "monc", "ms", "objecter", "osd", "paxos", "perfcounter", "rados", "rbd", "rocksdb", "throttle",
	}
}

// config is the configuration of a pod's daemons, and of clients.
func config(in places, peers []netip.Addr, pod int) []byte {
	var b strings.Builder
	b.WriteString("[global]\n")
	set := func(key, format string, arguments ...any) { fmt.Fprintf(&b, key+" = "+format+"\n", arguments...) }
	set("fsid", fsid)
	set("mon host", "%s", monitorAddress(peers))
	for _, what := range []string{"cluster", "service", "client"} {
		set("auth "+what+" required", "none")
	}
	set("ms bind ipv4", "%t", peers[0].Is4())
	set("ms bind ipv6", "%t", peers[0].Is6())
	set("ms bind msgr1", "false")
	set("ms async op threads", "1")
	set("run dir", "%s", in.of(""))
	set("crash dir", "%s", in.of(""))
	set("admin socket", "%s", in.of("$name.asok"))
	// Daemons say what they have to say on their standard error, and only what is wrong.
	set("log to stderr", "true")
	set("log to file", "false")
	set("log max recent", "1")
	set("mon cluster log to file", "false")
	for _, part := range quiet() {
		set("debug "+part, "0/0")
	}
	set("rbd default features", "1")
	set("rbd cache", "false")
	if pod >= 0 {
		b.WriteString(monitorConfig(in, len(peers)))
		b.WriteString(osdConfig(in, peers[pod], pod))
	}
	return []byte(b.String())
}

// monitorConfig is what a monitor has to know.
func monitorConfig(in places, osds int) string {
	return fmt.Sprintf(`mon data = %s
mon data avail warn = 1
mon data avail crit = 1
mon max pg per osd = 1000
auth allow insecure global id reclaim = false
osd pool default size = %d
osd pool default min size = %d
mon allow pool size one = true
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 1
`, in.of("mon"), min(copies, osds), min(2, osds)) + patience
}

// patience is for networks that are swapped beneath the cluster: no daemon is taken for dead that is silent for less than a minute,
// and nothing is copied elsewhere when one is. A process that died is found at once, by the connection that is refused.
const patience = `osd heartbeat grace = 60
mon osd down out interval = 86400
`

// osdConfig is what an OSD has to know. It takes little memory (RocksDB keeps one set of buffers instead of a dozen, and placement
// groups short logs), and makes do with few threads: processors are few.
func osdConfig(in places, address netip.Addr, id int) string {
	return fmt.Sprintf(`public addr = %s
osd data = %s
osd objectstore = bluestore
crush location = root=default host=pod%d
osd crush initial weight = 1
osd class update on start = false
osd op queue = wpq
osd op num shards = 2
osd op num threads per shard = 1
osd memory target = 939524096
osd min pg log entries = 500
osd max pg log entries = 500
osd pg log dups tracked = 500
bluestore cache autotune = false
bluestore cache size = 67108864
bluestore block size = %d
bluestore block create = true
bluestore fsck on mount = false
bluestore debug enforce settings = ssd
bluestore rocksdb cf = false
bluestore rocksdb options = %s
`, address, in.of("osd"), id, int64(deviceSize), strings.Join([]string{
		"compression=kNoCompression", "max_write_buffer_number=2", "min_write_buffer_number_to_merge=1", "recycle_log_file_num=2",
		"write_buffer_size=16777216", "max_background_jobs=1",
	}, ","))
}

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
