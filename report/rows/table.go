package rows

import (
	"fmt"
	"iter"
	"reflect"
	"strings"

	"netdelta/result"
)

// Table is the rows of one table, all of one type.
type Table struct {
	Row reflect.Type
	All iter.Seq[any]
}

// Of makes a table of a run, one of Tables.
func Of(run result.Run, trials result.Trials, name string) (Table, error) {
	switch name {
	case TableDeltas:
		return tableOf(Deltas(run)), nil
	case TableEffects:
		return tableOf(Effects(run)), nil
	case TableTrials:
		return tableOf(Trials(run, trials)), nil
	case TableBursts:
		return tableOf(Bursts(run, trials)), nil
	case TableChecks:
		return tableOf(Checks(run)), nil
	case TableClaims:
		return tableOf(Claims(run)), nil
	}
	return Table{}, fmt.Errorf("there is no table %q; there are %s", name, strings.Join(Tables(), ", "))
}

func tableOf[Row any](all iter.Seq[Row]) Table {
	return Table{reflect.TypeFor[Row](), func(yield func(any) bool) {
		for row := range all {
			if !yield(row) {
				return
			}
		}
	}}
}
