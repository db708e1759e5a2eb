// Package parquet writes a run as an Apache Parquet file: one table of package rows with its types, compressed with zstd.
// Null is a value that a row has not, such as the bounds of an interval that takes more builds.
package parquet

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/parquet-go/parquet-go"

	"netdelta/internal/machine"
	"netdelta/report/rows"
	"netdelta/result"
)

// Write writes a table of a run, one of rows.Tables.
func Write(w io.Writer, run result.Run, trials []result.Trial, table string) error {
	switch table {
	case rows.TableDeltas:
		return write(w, run, rows.Deltas(run))
	case rows.TableEffects:
		return write(w, run, rows.Effects(run))
	case rows.TableTrials:
		return write(w, run, rows.Trials(run, trials))
	case rows.TableBursts:
		return write(w, run, rows.Bursts(run, trials))
	case rows.TableChecks:
		return write(w, run, rows.Checks(run))
	case rows.TableClaims:
		return write(w, run, rows.Claims(run))
	}
	return fmt.Errorf("there is no table %q; there are %s", table, strings.Join(rows.Tables(), ", "))
}

// rowGroup is how many rows are kept in memory before they are written: a run of many cells has millions of bursts.
const rowGroup = 100_000

func write[Row any](w io.Writer, run result.Run, all iter.Seq[Row]) error {
	out := parquet.NewGenericWriter[Row](w,
		parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(rowGroup),
		parquet.CreatedBy("netdelta", machine.Version(), ""),
		parquet.KeyValueMetadata("netdelta.run", run.Run),
		parquet.KeyValueMetadata("netdelta.study", run.Study),
	)
	batch := make([]Row, 0, 256)
	for row := range all {
		batch = append(batch, row)
		if len(batch) < cap(batch) {
			continue
		}
		if _, err := out.Write(batch); err != nil {
			return errors.Join(err, out.Close())
		}
		batch = batch[:0]
	}
	if _, err := out.Write(batch); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}
