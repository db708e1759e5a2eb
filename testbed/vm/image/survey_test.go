package image

import (
	"path/filepath"
	"slices"
	"testing"
)

// What was found in another image is not passed on.
func TestSurveyIsOfThisImage(t *testing.T) {
	folder := t.TempDir()
	one, other := Image{Dir: filepath.Join(folder, "one")}, Image{Dir: filepath.Join(folder, "other")}
	var found []string
	if known, err := one.Survey(&found); known || err != nil {
		t.Errorf("without a survey: %v, %v", known, err)
	}
	if err := one.KeepSurvey([]byte(`["ipip"]`)); err != nil {
		t.Fatal(err)
	}
	if known, err := one.Survey(&found); !known || err != nil || !slices.Equal(found, []string{"ipip"}) {
		t.Errorf("found %v, known %v: %v", found, known, err)
	}
	if known, err := other.Survey(&found); known || err != nil {
		t.Errorf("of another image: %v, %v", known, err)
	}
}
