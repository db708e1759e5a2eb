package tool_test

import (
	"errors"
	"strings"
	"testing"

	"netdelta/workload/tool"
)

func TestErrorsHaveTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  \"a\": 1,\n  b\n}": "3:3: invalid character 'b' looking for beginning of object key string",
		"{\n  \"a\": \"x\"\n}":   "2:10: json: cannot unmarshal string",
		"":                       "1:1: unexpected end of JSON input",
	} {
		var into struct{ A int }
		err := tool.JSON([]byte(text), &into)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	plain := errors.New("plain")
	if err := tool.Place(nil, plain); !errors.Is(err, plain) || err.Error() != "plain" {
		t.Errorf("an error without a place: %v", err)
	}
	if err := tool.At([]byte("ab\ncd"), 100, plain); err.Error() != "2:3: plain" {
		t.Errorf("beyond the end: %v", err)
	}
}

func TestNumber(t *testing.T) {
	for _, text := range []string{"", "x", "Inf", "NaN", "1e999", "1,5"} {
		if n, err := tool.Number(text); err == nil {
			t.Errorf("%q is %v", text, n)
		}
	}
	if n, err := tool.Number("-1.5e3"); err != nil || n != -1500 {
		t.Errorf("%v, %v", n, err)
	}
}
