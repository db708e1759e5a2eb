package html

import (
	"strings"

	"netdelta/network"
	"netdelta/report/words"
)

// rankingsMost is how many settings have a picture of their ranking; the tables have all.
const rankingsMost = 24

// ranking is the picture that the page opens with: the networks of one setting, the cheapest first, each with a bar as long as what it
// costs. One setting's is shown; the reader chooses which.
type ranking struct {
	Setting *setting
	forest
	Rows []ranked
}

// ranked is a network's bar.
type ranked struct {
	row
	// Group is a letter: networks with the same one are tied. First says that it is the first of them.
	Group string
	First bool
	// Uses names systems whose pods are attached like this: as many as there is room for are shown, none in part.
	Uses []string
}

// AllUses are all of them.
func (r ranked) AllUses() string { return strings.Join(r.Uses, ", ") }

// rankings are the pictures of the settings with headline deltas, at most rankingsMost of them.
func (p *page) rankings() []ranking {
	users := network.Users()
	var all []ranking
	for _, s := range p.Settings {
		if len(s.headlines()) == 0 || len(all) == rankingsMost {
			continue
		}
		all = append(all, p.rank(s, users))
	}
	return all
}

// rank draws one; its axis is its own, so that one expensive setting does not flatten the others.
func (p *page) rank(s *setting, users map[string][]string) ranking {
	heads := s.headlines()
	a := p.axes("r"+s.ID, heads)[keyOf(heads[0])]
	r := ranking{Setting: s, forest: p.newForest(heads[0], a)}
	floor := floorOf(s.null(heads[0].Metric))
	for i, tier := range s.part.Tiers(heads) {
		for k, d := range tier {
			own := a.row(d, false, floor)
			own.Plot = a.bar(d, own, floor)
			r.Rows = append(r.Rows, ranked{row: own, Group: letter(i), First: k == 0, Uses: users[d.Network]})
		}
	}
	return r
}

// letter is A for 0, B for 1, and AA after Z.
func letter(i int) string {
	text := ""
	for i++; i > 0; i = (i - 1) / 26 {
		text = string(rune('A'+(i-1)%26)) + text
	}
	return text
}

// Chip is what the button that chooses the setting says.
func (r ranking) Chip() string { return words.Title(r.Setting.Key) }

// MoreSettings counts the settings with headline deltas that have no picture.
func (p *page) MoreSettings() int {
	n := -len(p.Rankings)
	for _, s := range p.Settings {
		if len(s.headlines()) > 0 {
			n++
		}
	}
	return n
}

// Answer is the answer of the run in one sentence, "" where nothing was compared.
func (p *page) Answer() string {
	if lines := words.Summary(p.Run); len(lines) > 0 {
		return lines[0]
	}
	return ""
}
