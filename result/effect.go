package result

// Effect is what a factor does to one network: a cell at one of the factor's levels against the same network, workload and
// parameters at the first level, paired in the same rounds. Where a Delta is what a network costs, an Effect is what a
// condition costs on it.
type Effect struct {
	// Cell is measured at the level To, Reference at the level From; everything else of them is the same.
	Cell      string `json:"cell"`
	Reference string `json:"reference"`
	Network   string `json:"network"`
	Setting
	Path string `json:"path"`
	// Factor is a condition or parameter ("policy"), From and To are two of its levels ("none", "nftables:1000").
	Factor string `json:"factor"`
	From   string `json:"from"`
	To     string `json:"to"`
	Metric string `json:"metric"`
	// Headline marks the metric that the setting's verdicts and conclusions are about.
	Headline bool   `json:"headline"`
	Unit     string `json:"unit"`
	Better   string `json:"better"` // lower or higher
	// FromValue is the metric's value at From, Value its value at To.
	FromValue float64 `json:"from_value"`
	Value     float64 `json:"value"`
	Judgement
	Warnings []string `json:"warnings,omitempty"`
	// Across says that the two levels are states of the cluster; Blocks then counts the visits to each.
	Across *Across `json:"across,omitempty"`
}
