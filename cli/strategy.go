package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netdelta/experiment/fleet"
	"netdelta/experiment/pairs"
	"netdelta/experiment/policies"
	"netdelta/experiment/record"
	"netdelta/experiment/study"
	"netdelta/insight"
	fleetinsight "netdelta/insight/fleet"
	pairsinsight "netdelta/insight/pairs"
	policiesinsight "netdelta/insight/policies"
	"netdelta/internal/machine"
	fleetreport "netdelta/report/fleet"
	"netdelta/report/html"
	pairsreport "netdelta/report/pairs"
	policiesreport "netdelta/report/policies"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
)

// strategy is what the verbs fleet, pairs and policies share: a study file made of their flags, and a run folder.
type strategy struct {
	name, question string
	// document is how the name of a file ends that --out names in place of a run folder; "" for none.
	document    string
	out, resume string
	json        bool

	flags   *pflag.FlagSet
	options []string // the flags that a study file may have
	study   record.Study
}

// add adds the shared flags to a verb that has the flags of its study already.
func (s *strategy) add(cmd *cobra.Command, out string) {
	s.flags = cmd.Flags()
	s.flags.VisitAll(func(f *pflag.Flag) { s.options = append(s.options, f.Name) })
	s.flags.BoolVar(&s.json, "json", false, "print one JSON document")
	s.flags.StringVar(&s.out, "out", "", out)
	s.flags.StringVar(&s.resume, "resume", "", "go on with the run in this folder")
	cmd.Use += " [FILE]"
	cmd.Args = args(cobra.MaximumNArgs(1))
	cmd.Long += `

FILE is a study file as a run folder has it: "strategy: ` + s.name + `", options (these flags), and claims. Flags replace its options.`
}

// read takes the options that no flag sets from a study file, or from the folder of the run that is resumed.
func (s *strategy) read(files []string) error {
	s.study = record.Study{Name: s.name, Strategy: s.name, Question: s.question}
	var data []byte
	var file string
	var err error
	switch {
	case s.resume != "" && (len(files) > 0 || s.out != "" && !s.isDocument()):
		return usageError{errors.New("--resume goes on with the study and in the folder of the run: give no other")}
	case s.resume != "":
		file = filepath.Join(s.resume, result.StudyFile)
		data, err = result.LoadStudy(s.resume)
	case len(files) > 0:
		file = files[0]
		data, err = os.ReadFile(file)
	default:
		return nil
	}
	if err == nil {
		s.study, err = record.Parse(file, s.name, data)
	}
	if err != nil {
		return usageError{fmt.Errorf("read the study: %w", err)}
	}
	for _, name := range slices.Sorted(maps.Keys(s.study.Options)) {
		if err := oneOf("options", name, s.options); err != nil {
			return usageError{fmt.Errorf("%s: %w", file, err)}
		}
		if f := s.flags.Lookup(name); !f.Changed {
			if err := s.set(f); err != nil {
				return usageError{fmt.Errorf("%s: option %s: %w", file, name, err)}
			}
		}
	}
	return nil
}

// set gives a flag the value of the study.
func (s *strategy) set(f *pflag.Flag) error {
	values, list := s.study.Values(f.Name)
	if all, ok := f.Value.(pflag.SliceValue); ok {
		return all.Replace(values)
	}
	if list {
		return errors.New("it takes one value, not a list")
	}
	return f.Value.Set(values[0])
}

// isDocument says whether --out names a document in place of a run folder.
func (s *strategy) isDocument() bool { return s.document != "" && strings.HasSuffix(s.out, s.document) }

// openRecord makes or reopens the run folder of a verb whose flags have their final values.
func (env *environment) openRecord(s *strategy, run result.Run) (rec *record.Record, folder *result.Folder, err error) {
	for _, name := range s.options {
		if all, ok := s.flags.Lookup(name).Value.(pflag.SliceValue); ok {
			if values := all.GetSlice(); len(values) > 0 {
				s.study.Set(name, true, values...)
			}
		} else if text := s.flags.Lookup(name).Value.String(); text != "" {
			s.study.Set(name, false, text)
		}
	}
	data, err := s.study.Marshal()
	if err != nil {
		return nil, nil, err
	}
	if run.Environment, err = machine.Describe(machine.Version()); err != nil {
		return nil, nil, err
	}
	run.Study, run.Question, run.Confidence, run.Claims = s.study.Name, s.study.Question, study.DefaultConfidence, study.Untested(s.study.Claims)
	out := s.out
	if s.isDocument() {
		out = ""
	}
	if folder, err = env.location(out, s.resume).Open(s.study.Name, data, &run); err != nil {
		return nil, nil, badInput(err)
	}
	return record.New(run, folder), folder, nil
}

// closeRecord judges a record, writes its result and its views, and prints what was asked of it beyond the verb's own tables.
func (env *environment) closeRecord(s *strategy, rec *record.Record, folder *result.Folder) error {
	words.NewJudge(env.workloads).Conclude(&rec.Run, rec.Trials)
	if err := rec.Save(); err != nil {
		return errors.Join(err, folder.Close())
	}
	if len(rec.Run.Claims) > 0 && !s.json {
		if err := env.print(rec.Run, false); err != nil {
			return errors.Join(err, folder.Close())
		}
	}
	fmt.Fprintf(env.err, "run folder: %s\n", ui.Clean(folder.Dir()))
	return errors.Join(env.writeViews(rec.Run, folder.Files), folder.Close())
}

// failedRecord writes the end of a run that could not go on, and returns its error with the exit status it deserves.
func failedRecord(err, nothing error, rec *record.Record, folder *result.Folder) error {
	err = errors.Join(err, rec.Save(), folder.Close())
	if errors.Is(err, nothing) {
		return withStatus(exitNothing, err)
	}
	return err
}

// printStrategy prints a run as the verb of its strategy does; false for runs that have none.
func (env *environment) printStrategy(m insight.Measured) (bool, error) {
	if m.Run.Strategy == nil {
		return false, nil
	}
	switch m.Run.Strategy.Name {
	case result.StrategyPairs:
		return true, pairsreport.WriteText(env.out, pairsOf(m))
	case result.StrategyFleet, result.StrategyPolicies:
		return true, writeTables(env.out, m)
	}
	return false, nil
}

// pairsOf judges a run of pairs.
func pairsOf(m insight.Measured) pairsinsight.Report {
	return pairsinsight.Judge(pairs.Of(m.Run, m.Trials), stats.Options{Margin: m.Run.Margin})
}

// strategyPart is what a strategy adds to the page of a run.
func strategyPart(m insight.Measured) ([]html.Option, error) {
	if m.Run.Strategy == nil {
		return nil, nil
	}
	switch m.Run.Strategy.Name {
	case result.StrategyPairs:
		style, body, err := pairsreport.Part(pairsOf(m))
		return []html.Option{html.WithPart("Every pair of nodes", style, body)}, err
	case result.StrategyFleet, result.StrategyPolicies:
		var text strings.Builder
		err := writeTables(&text, m)
		title := map[string]string{result.StrategyFleet: "All clients together", result.StrategyPolicies: "How soon policies act"}[m.Run.Strategy.Name]
		return []html.Option{html.WithPart(title, "", html.Text(text.String()))}, err
	}
	return nil, nil
}

// writeTables prints the tables of a fleet or of policies.
func writeTables(w io.Writer, m insight.Measured) error {
	if m.Run.Strategy.Name == result.StrategyPolicies {
		return policiesreport.WriteText(w, policiesinsight.Judge(policies.Of(m.Run, m.Trials)))
	}
	measured, err := fleet.Of(m.Run, m.Trials)
	if err != nil {
		return err
	}
	return fleetreport.WriteText(w, fleetinsight.Judge(measured, stats.Options{}))
}
