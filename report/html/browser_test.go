package html

import (
	"os"
	"path/filepath"
	"testing"

	"netdelta/insight"
	"netdelta/report/browsertest"
	"netdelta/result"
)

// TestInBrowser looks at pages as readers see them: each test has a page of its own, all of them in one browser.
func TestInBrowser(t *testing.T) {
	browser := browsertest.Start(t)
	for name, test := range map[string]func(*testing.T, *browsertest.Browser){
		"drawn": testDrawn, "narrow font": testNarrowFont, "odd runs": testOddRunsDrawn, "a crowd": testCrowdDrawn, "hostile": testHostilePage, "without scripts": testReadWithoutScripts,
		"ranking": testRankingFirst, "otherwise": testOtherwise, "sliders": testRequestSliders, "goals": testGoalsOnPage, "functions": testFunctionsOnPage,
		"behind": testBehindInBrowser, "filters": testFilters, "readouts": testReadouts, "sorted": testSorted, "printed": testPrinted, "accessible": testAccessible,
	} {
		t.Run(name, func(t *testing.T) {
			// What has room in a wide font has room in all.
			b := browser.Another(t)
			b.Font(browsertest.WideFont)
			test(t, b)
		})
	}
}

// written writes a run's report into a folder that ends with the test.
func written(t testing.TB, run result.Run, trials []result.Trial, options ...Option) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(f, run, insight.Summarize(result.List(trials)), options...); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
