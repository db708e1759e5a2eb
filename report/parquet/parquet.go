// Package parquet writes a run as an Apache Parquet file: one table of package rows with its types, compressed with zstd.
// Null is a value that a row has not, such as the bounds of an interval that takes more builds.
package parquet

import (
	"errors"
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"

	"netdelta/internal/machine"
	"netdelta/report/rows"
	"netdelta/result"
)

// Write writes a table of a run, one of rows.Tables.
func Write(w io.Writer, run result.Run, trials result.Trials, table string) error {
	t, err := rows.Of(run, trials, table)
	if err != nil {
		return err
	}
	out := parquet.NewWriter(w, parquet.SchemaOf(reflect.New(t.Row).Interface()),
		parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(rowGroup),
		parquet.CreatedBy("netdelta", machine.Version(), ""),
		parquet.KeyValueMetadata("netdelta.run", run.Run),
		parquet.KeyValueMetadata("netdelta.study", run.Study),
	)
	for row := range t.All {
		if err := out.Write(row); err != nil {
			return errors.Join(err, out.Close())
		}
	}
	return out.Close()
}

// rowGroup is how many rows are kept in memory before they are written: a run of many cells has millions of bursts.
const rowGroup = 100_000
