package change_test

import (
	"os"
	"testing"

	"netdelta/internal/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }
