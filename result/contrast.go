package result

// Contrast is one network of a setting held directly against another, in the headline metric: over the builds that both were measured
// in, without the baseline in between.
type Contrast struct {
	Cell  string `json:"cell"`
	Other string `json:"other"`
	// Ratio is Cell over Other; it is left out where a ratio means nothing, and the difference stands in its place.
	Ratio          float64  `json:"ratio,omitzero"`
	RatioLow       *float64 `json:"ratio_low,omitempty"`
	RatioHigh      *float64 `json:"ratio_high,omitempty"`
	Difference     float64  `json:"difference,omitzero"`
	DifferenceLow  *float64 `json:"difference_low,omitempty"`
	DifferenceHigh *float64 `json:"difference_high,omitempty"`
	// Blocks counts the builds behind the interval.
	Blocks int `json:"blocks"`
	// PAdjusted is corrected over all contrasts of the setting.
	PAdjusted *float64 `json:"p_adjusted"`
	// Cheaper is the cell of the two that is known to cost less, "" where neither is.
	Cheaper string `json:"cheaper,omitempty"`
}
