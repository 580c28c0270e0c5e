package audit

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
)

// row is an entry as it is stored: its JSON, and the columns that it is found by.
type row struct {
	node                         string
	seq, at                      int64 // at is microseconds since 1970
	org                          string
	who, name, subject, decision string
	entry                        string
}

const rowColumns = `node, seq, at, org, who, name, subject, decision, entry`

// columnCount is the number of rowColumns.
const columnCount = 9

// rowOf stores an entry whose JSON is text.
func rowOf(e *Entry, text string) row {
	return row{
		node: e.Node, seq: e.Seq, at: e.At.UnixMicro(), entry: text,
		org: column(e.Org), who: column(e.Who), name: column(e.Name), subject: column(e.Subject), decision: column(e.Decision),
	}
}

func scanRow(from db.Scanner) (r row, err error) {
	return r, from.Scan(&r.node, &r.seq, &r.at, &r.org, &r.who, &r.name, &r.subject, &r.decision, &r.entry)
}

// column is text for a column: Postgres stores neither zero bytes nor invalid UTF-8.
func column(text string) string {
	return strings.ReplaceAll(valid(text), "\x00", "\ufffd")
}

// maxRows is how many rows one statement inserts.
const maxRows = 64

// insertRows inserts rows, many per statement. The numbers of rows are powers of two,
// so that the database prepares only a few different statements.
//
// Two processes of one node may insert the same sequence number at once. Postgres
// reports that as a conflict of transactions, which db.Write retries, only with
// ON CONFLICT DO NOTHING; a row that was there before is an error.
func insertRows(ctx context.Context, tx *db.Tx, rows []row) error {
	for n := maxRows; len(rows) > 0; {
		for n > len(rows) {
			n /= 2
		}
		args := make([]any, 0, columnCount*n)
		for _, r := range rows[:n] {
			args = append(args, r.node, r.seq, r.at, r.org, r.who, r.name, r.subject, r.decision, r.entry)
		}
		added, err := tx.Exec(ctx, inserts()[n], args...)
		if err != nil {
			return err
		}
		if added < int64(n) {
			return fault.New(fault.Conflict, "audit entry %d of node %s, or one of the %d after it, exists already", rows[0].seq, rows[0].node, n-1).
				WithHint("the table audit_log was edited by hand: run luanette audit verify")
		}
		rows = rows[n:]
	}
	return nil
}

// inserts are the statements of insertRows, by the number of rows. They are made when they
// are first needed, since that takes as long as some commands.
var inserts = sync.OnceValue(func() map[int]string {
	all := map[int]string{}
	for n := 1; n <= maxRows; n *= 2 {
		var text strings.Builder
		text.WriteString(`INSERT INTO audit_log (` + rowColumns + `) VALUES `)
		for i := range columnCount * n {
			switch {
			case i == 0:
				text.WriteString(`(`)
			case i%columnCount == 0:
				text.WriteString(`), (`)
			default:
				text.WriteString(`, `)
			}
			text.WriteString("$" + strconv.Itoa(i+1))
		}
		all[n] = text.String() + `) ON CONFLICT DO NOTHING`
	}
	return all
})
