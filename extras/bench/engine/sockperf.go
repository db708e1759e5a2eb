package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"netdelta/stats"
)

// sockperfRun is a sockperf client that is started and stands still between its turns. What each turn measured is read from
// its log of all packets afterwards.
type sockperfRun struct {
	*frozen
	log   string
	base  time.Time
	turns []span
}

// span is when a turn began and ended.
type span struct{ begin, end time.Duration }

func openSockperf(p *programs, ends *namespaces, protocol string, o options) (*sockperfRun, error) {
	_, serverAddr := addresses()
	common := []string{"-i", serverAddr.String(), "-p", strconv.Itoa(foreignPort)}
	if protocol == "tcp" {
		common = append(common, "--tcp")
	}
	r := &sockperfRun{log: filepath.Join(p.folder, "sockperf.csv"), base: time.Now()}
	server := append([]string{p.sockperf, "server"}, common...)
	// Its time runs on while it stands still. Turns beyond it leave no trace in its log, and don't count.
	client := append([]string{p.sockperf, "ping-pong", "--full-rtt", "--full-log", r.log, "-t", "5", "-m", strconv.Itoa(o.size)}, common...)
	var err error
	r.frozen, err = openFrozen(ends, o.cpu, "Starting test", 500*time.Millisecond, server, client)
	return r, err
}

func (r *sockperfRun) play(length time.Duration) error {
	begin := time.Since(r.base)
	err := r.turn(func() error {
		time.Sleep(length)
		return nil
	})
	r.turns = append(r.turns, span{begin, time.Since(r.base)})
	return err
}

// packet is a line of sockperf's log: when it was sent, by its own clock, and its round trip.
type packet struct {
	at    time.Duration
	round float64 // ns
}

// medians ends the run and returns the median round trip of each turn in nanoseconds; 0 where the log has too little.
func (r *sockperfRun) medians() ([]float64, error) {
	if err := r.finish(); err != nil {
		return nil, err
	}
	packets, err := readLog(r.log)
	if err != nil {
		return nil, err
	}
	clock, err := align(packets, r.turns)
	if err != nil {
		return nil, err
	}
	medians := make([]float64, len(r.turns))
	for i, t := range r.turns {
		var rounds []float64
		for _, p := range packets {
			// Neither the first nor the last moment: a packet that was under way during a stop measures the stop.
			if p.at > clock.at(t.begin+time.Millisecond) && p.at < clock.at(t.end-time.Millisecond) && p.round < 5e6 {
				rounds = append(rounds, p.round/clock.rate)
			}
		}
		if len(rounds) >= 100 {
			medians[i] = stats.Median(rounds)
		}
	}
	return medians, nil
}

func readLog(path string) (packets []packet, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read what sockperf has measured: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), ", ")
		if len(fields) != 4 {
			continue
		}
		at, errAt := strconv.ParseFloat(fields[1], 64)
		round, errRound := strconv.ParseFloat(fields[3], 64)
		if errAt == nil && errRound == nil {
			packets = append(packets, packet{time.Duration(at * 1e9), round * 1e3})
		}
	}
	if len(packets) == 0 {
		return nil, fmt.Errorf("sockperf's log %s has no packets", path)
	}
	return packets, nil
}

// foreignClock relates sockperf's clock to ours: its time is rate times ours plus offset. sockperf calibrates the time stamp
// counter in its own way at its start, and on a busy machine is off by some percent.
type foreignClock struct {
	rate   float64
	offset time.Duration
}

func (c foreignClock) at(ours time.Duration) time.Duration {
	return time.Duration(c.rate*float64(ours)) + c.offset
}

// errNotFound says that a busy machine has blurred a log so much that its turns can't be separated.
var errNotFound = errors.New("too few turns were found in sockperf's log")

// align finds sockperf's clock: after each stop its log goes on where a turn begins. Each pair of such places is tried as
// an early and a late turn, and the one by which most turns are found is taken.
func align(packets []packet, turns []span) (best foreignClock, err error) {
	const pause = 10 * time.Millisecond
	var resumed []time.Duration
	for i := 1; i < len(packets); i++ {
		if packets[i].at-packets[i-1].at > pause {
			resumed = append(resumed, packets[i].at)
		}
	}
	most := 0
	for _, early := range turns[:(len(turns)+1)/2] {
		for _, late := range turns[len(turns)/2:] {
			for i, first := range resumed {
				for _, last := range resumed[i+1:] {
					c := foreignClock{rate: float64(last-first) / float64(late.begin-early.begin)}
					if c.rate < 0.95 || c.rate > 1.05 {
						continue
					}
					c.offset = first - time.Duration(c.rate*float64(early.begin))
					if n := c.matches(resumed, turns); n > most {
						most, best = n, c
					}
				}
			}
		}
	}
	if most < len(turns)/2 {
		return best, fmt.Errorf("%w: %d of %d", errNotFound, most, len(turns))
	}
	return best, nil
}

// matches counts the turns that begin where the log goes on.
func (c foreignClock) matches(resumed []time.Duration, turns []span) int {
	const near = 4 * time.Millisecond
	n := 0
	for _, t := range turns {
		i, _ := slices.BinarySearch(resumed, c.at(t.begin)-near)
		if i < len(resumed) && resumed[i] < c.at(t.begin)+near {
			n++
		}
	}
	return n
}
