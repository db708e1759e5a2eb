package change_test

import (
	"os"
	"testing"

	"netdelta/internal/leak"
)

func TestMain(m *testing.M) {
	if where := os.Getenv(secondRun); where != "" {
		beSecond(where)
	}
	os.Exit(leak.Main(m))
}
