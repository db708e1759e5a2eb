package experiment

import (
	"fmt"
	"slices"

	"netdelta/result"
)

// usualCongestion is the congestion control of cells that ask for none.
const usualCongestion = "cubic"

// allowed is the setting by which a kernel lets those choose a congestion control who have no rights.
const allowed = "net.ipv4.tcp_allowed_congestion_control"

// congested is the error of a seat that asked for a congestion control and got another: where the pods have no rights, the kernel may
// not let them choose.
func (s *seat) congested(used *result.TCPInfo) error {
	asked := s.cell.Params.CongestionControl
	if !s.far || asked == "" || used == nil || used.CongestionControl == "" || used.CongestionControl == asked {
		return nil
	}
	return fmt.Errorf("%s ran under congestion control %s: its pods may not choose %s; allow it on their nodes by sysctl %s", s.cell.ID, used.CongestionControl, asked, allowed)
}

// noteCongestion says under which congestion control trials ran that could not have the usual one.
func (r *runner) noteCongestion(t result.Trial) {
	if r.stage.able.OwnsNodes || t.TCP == nil || t.TCP.CongestionControl == "" || t.TCP.CongestionControl == usualCongestion || t.Failed != "" {
		return
	}
	i := slices.IndexFunc(r.run.Cells, func(c result.Cell) bool { return c.ID == t.Cell })
	if i < 0 || r.run.Cells[i].Params.CongestionControl != "" {
		return
	}
	note := fmt.Sprintf("TCP ran under congestion control %s where %s is usual: the pods may not choose; sysctl %s of their nodes allows it", t.TCP.CongestionControl, usualCongestion, allowed)
	if !slices.Contains(r.run.Notes, note) {
		r.run.Notes = append(r.run.Notes, note)
	}
}
