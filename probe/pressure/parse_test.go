package pressure

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	psi := func(text string) (time.Duration, error) { return parsePSI([]byte(text)) }
	queue := func(text string) (time.Duration, error) { return parseSchedule([]byte(text), []int{1}) }
	throttled := func(text string) (time.Duration, error) {
		got, err := parseThrottling([]byte(text))
		return got.span, err
	}
	for _, c := range []struct {
		name  string
		parse func(string) (time.Duration, error)
		text  string
		want  time.Duration
		ok    bool
	}{
		{"pressure", psi, "some avg10=8.68 avg60=11.26 avg300=4.58 total=4399184347\nfull avg10=0.00 total=7\n", 4399184347 * time.Microsecond, true},
		{"pressure without a total", psi, "some avg10=8.68\n", 0, false},
		{"pressure of nothing", psi, "", 0, false},
		{"pressure below nothing", psi, "some total=-1\n", 0, false},
		{"pressure beyond time", psi, "some total=9223372036854775807\n", 0, false},
		{"queues", queue, "version 17\ncpu0 1 2 3 4 5 6 7 8 9\ncpu1 0 0 0 0 0 0 700 88 9\ndomain0 MC 3 1 2\n", 88, true},
		{"queues of another processor", queue, "cpu0 1 2 3 4 5 6 7 8 9\n", 0, true},
		{"queues of an old kernel", queue, "cpu1 1 2 3\n", 0, false},
		{"queues of no processor", queue, "cpux 1 2 3 4 5 6 7 8 9\n", 0, false},
		{"version 2", throttled, "usage_usec 1\nnr_throttled 3\nthrottled_usec 250\n", 250 * time.Microsecond, true},
		{"version 1", throttled, "nr_periods 5\nnr_throttled 3\nthrottled_time 250\n", 250, true},
		{"no limit", throttled, "usage_usec 1\n\nuser_usec\n", 0, true},
		{"no number", throttled, "nr_throttled often\n", 0, false},
	} {
		if got, err := c.parse(c.text); got != c.want && c.ok || (err == nil) != c.ok {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

// FuzzParse: whatever the kernel's files hold, the answer is an error or a time that is not negative, unless a sum is beyond
// all time.
func FuzzParse(f *testing.F) {
	f.Add("some avg10=0.00 total=12\n")
	f.Add("cpu0 1 2 3 4 5 6 7 8 9\ncpu1 1 2 3 4 5 6 7 9 9\n")
	f.Add("nr_throttled 1\nthrottled_usec 3\nthrottled_time 4")
	f.Fuzz(func(t *testing.T, text string) {
		if total, err := parsePSI([]byte(text)); err == nil && total < 0 {
			t.Errorf("a pressure of %v", total)
		}
		if got, err := parseThrottling([]byte(text)); err == nil && got.span < 0 {
			t.Errorf("throttled for %v", got.span)
		}
		one, err := parseSchedule([]byte(text), []int{0})
		if _, allErr := parseSchedule([]byte(text), nil); allErr == nil && err != nil {
			t.Errorf("all processors' queues can be read, one's not: %v, %v", one, err)
		}
	})
}
