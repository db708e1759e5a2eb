package oltp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"netdelta/internal/daemon"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/workload"
	"netdelta/workload/oltp/galera"
	"netdelta/workload/tool/sysbench"
)

// dataKey is the parameter that says where the tables of a target come from.
const dataKey = "data"

// Where the tables of a target come from.
const (
	fresh    = "fresh"    // netdelta makes them and drops them at the end of the run
	kept     = "kept"     // netdelta makes them once, and leaves them to later runs
	prepared = "prepared" // the user has made them by sysbench: nothing is made and nothing is dropped
)

// tables are sysbench's tables in a target.
type tables struct {
	galera.Data
	from string
}

func tablesOf(p result.Params) tables {
	return tables{dataOf(p), cmp.Or(p.Own.Word(dataKey), fresh)}
}

// put is what is put into a target for them.
func (t tables) put() workload.Put {
	put := workload.Put{Key: t.String(), Disk: t.Size(), Within: t.Time(), After: "they are dropped at the end"}
	switch t.from {
	case kept:
		put.Key, put.After = t.String()+" that stay", "they stay there for later runs, which find them by the table "+markTable
	case prepared:
		put.Key, put.Disk, put.After = t.String()+" that are prepared", 0, "transactions change their rows"
	}
	return put
}

// markTable is the table that marks sysbench's tables as netdelta's. Its one row says whose they are.
const markTable = "netdelta_marker"

// mark is what the row says. In the order of a table's life: it is being made, by one run; or it was kept, and no run uses it, or one does.
type mark struct {
	text   string
	tables int
	rows   int    // 0 of tables that are dropped with their run
	run    string // that uses the tables, "" for none
}

const keptMark = "kept"

// marked is the mark of tables in use: "4-RUN", or "4-RUN-kept-25000" of those that stay.
func marked(t tables, run string, stay bool) mark {
	m := mark{tables: t.Tables, run: run, text: fmt.Sprintf("%d-%s", t.Tables, run)}
	if stay {
		m.rows = t.Rows
		m.text += fmt.Sprintf("-%s-%d", keptMark, t.Rows)
	}
	return m
}

// atRest is the mark of the same tables when no run uses them: "kept-4-25000".
func (m mark) atRest() mark {
	return mark{text: fmt.Sprintf("%s-%d-%d", keptMark, m.tables, m.rows), tables: m.tables, rows: m.rows}
}

// readMark reads a mark. Of one that an older release left it is not known how many tables there are.
func readMark(text string) mark {
	m := mark{text: text}
	f := strings.Split(text, "-")
	number := func(i int) (n int) {
		if i < len(f) {
			n, _ = strconv.Atoi(f[i])
		}
		return n
	}
	if f[0] == keptMark {
		m.tables, m.rows = number(1), number(2)
		return m
	}
	m.tables, m.run = cmp.Or(number(0), galera.Usual().Tables), text
	if len(f) == 4 && f[2] == keptMark {
		m.rows = number(3)
	}
	return m
}

// stays says that the tables are whole, and outlive the run that uses them.
func (m mark) stays() bool { return m.rows > 0 }

// free are the statements by which no run uses the tables any more: those that stay are marked so, others are dropped.
func (m mark) free() string {
	if m.stays() {
		return replacing(m, m.atRest())
	}
	return dropping(galera.Data{Tables: m.tables})
}

// held is a database with tables that transactions may use.
type held struct {
	session
	tables tables
	mark   mark // the zero value of tables that are not marked
	found  workload.Found
}

// Found implements workload.Held.
func (h *held) Found() workload.Found { return h.found }

// freeWithin is how long the database may take to drop the tables, askAgain the pause before one that is away is asked again.
const (
	freeWithin = 20 * time.Second
	askAgain   = 500 * time.Millisecond
)

// Close implements workload.Held: it drops the tables, or marks those that stay as no longer used.
func (h *held) Close() error { return errors.Join(h.free(), h.close()) }

// free ends the use of the tables, also when what made them was given up. A database that has ended may be on its way back: it is asked again.
func (h *held) free() error {
	if h.mark.text == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), freeWithin)
	defer cancel()
	_, err := h.query(ctx, h.mark.free())
	for err != nil && h.isAway(err) && ctx.Err() == nil {
		time.Sleep(askAgain)
		if _, again := h.query(ctx, h.mark.free()); again == nil || ctx.Err() == nil {
			err = again
		}
	}
	if err != nil {
		return fmt.Errorf("give up netdelta's tables: %w; do it by hand: %s", err, h.mark.free())
	}
	return nil
}

// ownTables are the names of the tables that sysbench makes: they can't be chosen.
func ownTables(data galera.Data) []string {
	var names []string
	for i := range data.Tables {
		names = append(names, fmt.Sprintf("sbtest%d", i+1))
	}
	return names
}

// dropping are the statements that take netdelta's tables away, the mark last.
func dropping(data galera.Data) string {
	return "drop table if exists " + strings.Join(ownTables(data), ", ") + "; drop table if exists " + markTable
}

// ready has the database have the tables. On error nothing that was made is left, as far as the database lets that be.
func (h *held) ready(ctx context.Context) error {
	version, err := h.query(ctx, "select version()")
	if err != nil {
		return h.denied(err)
	}
	there, err := h.query(ctx, fmt.Sprintf("select table_name from information_schema.tables where table_schema = %s and table_name in ('%s', '%s')",
		h.schema, markTable, strings.Join(ownTables(h.tables.Data), "', '")))
	if err != nil {
		return err
	}
	how := "of netdelta's, which are dropped at the end"
	switch {
	case strings.Contains(there, markTable):
		how = "that an earlier run has left for later ones"
		err = h.take(ctx, oneLine(there))
	case h.tables.from == prepared:
		how = "that were there"
		err = h.adopt(ctx, strings.Fields(there))
	case there != "":
		err = fmt.Errorf("it has tables of these names already (%s), which netdelta leaves alone; name an empty database, or say data: %s where sysbench has made them for this", oneLine(there), prepared)
	default:
		if h.tables.from == kept {
			how = "of netdelta's, which stay there for later runs"
		}
		err = h.fill(ctx)
	}
	if err != nil {
		return err
	}
	answers, err := answering(ctx, h.session)
	if err != nil {
		return errors.Join(fmt.Errorf("look at what stands before it: %w", err), h.free())
	}
	h.found.Says = fmt.Sprintf("%.80s on %s, with %v %s", oneLine(version), answers, h.tables.Data, how)
	return nil
}

// use says that this run uses the tables, and how they are given up by hand.
func (h *held) use(m mark) { h.mark, h.found.Mark, h.found.Undo = m, m.text, m.free() }

// take has this run use the tables that an earlier one has left for it. The others that are marked are another run's.
func (h *held) take(ctx context.Context, there string) error {
	text, err := h.query(ctx, "select mark from "+markTable)
	if err != nil {
		text = "" // it is being made, or an older release has made it
	}
	was := readMark(text)
	switch {
	case was.run != "" || !was.stays():
		if !was.stays() {
			was.tables = max(was.tables, h.tables.Tables)
		}
		return fmt.Errorf("another run of netdelta uses this database, or one that was lost has left its tables (%s); if none is under way: %s", there, was.free())
	case h.tables.from != kept:
		return fmt.Errorf("an earlier run has left its tables for later ones (%s); say data: %s to use them, or drop them: %s", there, kept, dropping(galera.Data{Tables: was.tables}))
	case was.tables != h.tables.Tables || was.rows != h.tables.Rows:
		return fmt.Errorf("the tables that an earlier run has left are %v, not %v; say tables: %d and rows: %d, or drop them: %s",
			galera.Data{Tables: was.tables, Rows: was.rows}, h.tables.Data, was.tables, was.rows, dropping(galera.Data{Tables: was.tables}))
	}
	mine := marked(h.tables, rand.Text(), true)
	text, err = h.query(ctx, replacing(was, mine)+"; select mark from "+markTable)
	switch {
	case err != nil:
		return fmt.Errorf("mark its tables as used: %w", h.denied(err))
	case text != mine.text:
		return fmt.Errorf("another run of netdelta has just begun to use this database (%s); wait for its end", there)
	}
	h.use(mine)
	return nil
}

// adopt refuses tables of the user's that are not those that the parameters say. They are not marked: nothing is made.
func (h *held) adopt(ctx context.Context, there []string) error {
	if len(there) != h.tables.Tables {
		return fmt.Errorf("data: %s takes the tables that sysbench has made, sbtest1 to sbtest%d, and %d of them are there; prepare %v, or say how many there are by tables and rows",
			prepared, h.tables.Tables, len(there), h.tables.Data)
	}
	last, err := h.query(ctx, strings.Join(gather.Each(ownTables(h.tables.Data), func(table string) string { return "select coalesce(max(id), 0) from " + table }), "; "))
	if err != nil {
		return fmt.Errorf("look at its tables: %w", h.denied(err))
	}
	for i, id := range strings.Fields(last) {
		if id != strconv.Itoa(h.tables.Rows) {
			return fmt.Errorf("the last row of table %s is number %s, not %d: say rows: %s if all tables have so many, or prepare them anew", ownTables(h.tables.Data)[i], id, h.tables.Rows, id)
		}
	}
	return nil
}

// fill makes the tables. They are netdelta's from the first on, and stay only when all are whole.
func (h *held) fill(ctx context.Context) error {
	run := rand.Text()
	making := marked(h.tables, run, false)
	h.use(making)
	if _, err := h.query(ctx, marking(making)); err != nil {
		return fmt.Errorf("make tables: %w", h.denied(err))
	}
	load := h.load(h.tables.Data)
	load.Test, load.Threads = "oltp_read_write", min(h.tables.Tables, defaultConnections)
	said, err := h.home.Run(ctx, daemon.Spec{Path: sysbench.Program, Args: load.Prepare(), Env: h.env(h.home)})
	if err != nil {
		var failed *sysbench.FailedError
		if _, errParse := sysbench.Parse(said); ctx.Err() == nil && errors.As(errParse, &failed) {
			err = failed // it says why on its standard output
		}
		return errors.Join(fmt.Errorf("fill the tables: %w", err), h.free())
	}
	if h.tables.from != kept {
		return nil
	}
	whole := marked(h.tables, run, true)
	if _, err := h.query(ctx, replacing(making, whole)); err != nil {
		return errors.Join(fmt.Errorf("mark the tables as whole: %w", h.denied(err)), h.free())
	}
	h.use(whole)
	return nil
}

// marking are the statements that say whose the tables are going to be. Strict clusters refuse a table without a primary key.
func marking(m mark) string {
	return fmt.Sprintf("create table %s (made timestamp default current_timestamp, mark varchar(64) primary key); insert into %s (mark) values ('%s')", markTable, markTable, m.text)
}

// replacing is the statement that puts a mark in the place of another one, where that is there.
func replacing(old, now mark) string {
	return fmt.Sprintf("update %s set mark = '%s' where mark = '%s'", markTable, now.text, old.text)
}

// clearTarget gives up the tables of a hold whose agent was lost, unless they are gone, or another run has made its own since.
func clearTarget(ctx context.Context, t workload.Target, text string) error {
	s, err := login(t)
	if err != nil {
		return fmt.Errorf("oltp: %s: %w", t, err)
	}
	found, err := s.query(ctx, fmt.Sprintf("select count(*) from information_schema.tables where table_schema = %s and table_name = '%s'", s.schema, markTable))
	if err == nil && found != "0" {
		if found, err = s.query(ctx, "select mark from "+markTable); err == nil && found == text {
			_, err = s.query(ctx, readMark(text).free())
		}
	}
	if err != nil {
		err = fmt.Errorf("oltp: %s at %s: give up netdelta's tables: %w", t, t.At(), s.denied(err))
	}
	return errors.Join(err, s.close())
}

// counted returns an error unless all tables have all their rows, as a database answers. More than mostCounted rows are not counted.
func counted(ctx context.Context, data galera.Data, ask asking) error {
	if data.Tables*data.Rows > mostCounted {
		return nil
	}
	counts, err := ask(ctx, counting(data))
	if err != nil {
		return err
	}
	return whole(counts, data)
}

// counting are the statements that count the rows of each of netdelta's tables.
func counting(data galera.Data) string {
	all := gather.Each(ownTables(data), func(table string) string { return "select count(*) from " + table })
	return strings.Join(all, "; ")
}

// whole returns an error unless all tables have all their rows. Transactions put back what they take away: rows are only missing where a
// change to the network, or the database, lost some.
func whole(counts string, data galera.Data) error {
	lines := strings.Fields(counts)
	if len(lines) != data.Tables {
		return fmt.Errorf("%d tables were counted, not %d: %s", len(lines), data.Tables, oneLine(counts))
	}
	for i, rows := range lines {
		if rows != strconv.Itoa(data.Rows) {
			return fmt.Errorf("table %s has %s rows where %d were made: what was measured since is not of the same data; look at the database's log, and run again", ownTables(data)[i], rows, data.Rows)
		}
	}
	return nil
}
