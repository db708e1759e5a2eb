package measure

import (
	"fmt"

	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/testbed"
)

// Spaces names the network namespaces of the session's testbed by the numbers of their inodes: pods, nodes and the switch between
// them. Where the testbed does not show them, only the two ends have names.
func (s *Session) Spaces() (map[uint32]string, error) {
	names := map[uint32]string{}
	shows := s.testbed.Instruments()
	if shows.Observer == nil || shows.Within == nil {
		for _, end := range s.agents() {
			var st unix.Stat_t
			if err := unix.Stat(fmt.Sprintf("/proc/%d/ns/net", end.PID()), &st); err != nil {
				return nil, fmt.Errorf("find the network namespace of %s: %w", end.Pod().Name(), err)
			}
			names[uint32(st.Ino)] = end.Pod().Name()
		}
		return names, nil
	}
	numbers, err := SpaceNumbers(shows)
	for number, space := range numbers {
		names[number] = space.String()
	}
	return names, err
}

// SpaceNumbers finds the network namespaces of a testbed on this machine by the numbers of their inodes, as tracers and
// profilers see them.
func SpaceNumbers(shows testbed.Instruments) (map[uint32]network.Space, error) {
	numbers := map[uint32]network.Space{}
	for _, space := range shows.Observer.Plan().Spaces() {
		err := shows.Within(space.String(), func(fd int) error {
			var st unix.Stat_t
			if err := unix.Fstat(fd, &st); err != nil {
				return fmt.Errorf("find the number of %s: %w", space, err)
			}
			numbers[uint32(st.Ino)] = space
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return numbers, nil
}
