package durable

import (
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// dbosColumns are the columns of the pinned DBOS version, in the tables that
// node.go uses. A mandatory column, which an INSERT must set, ends in "!".
var dbosColumns = map[string][]string{
	statusTable: strings.Fields(`workflow_uuid! status name authenticated_user assumed_role authenticated_roles request output error
		executor_id created_at updated_at application_version application_id class_name config_name recovery_attempts queue_name
		workflow_timeout_ms workflow_deadline_epoch_ms inputs started_at_epoch_ms deduplication_id priority queue_partition_key
		forked_from owner_xid parent_workflow_id serialization delay_until_epoch_ms was_forked_from rate_limited completed_at
		attributes schedule_name debounce_deadline_epoch_ms is_debounced application_name`),
	outputTable: strings.Fields(`workflow_uuid! function_id! function_name output error child_workflow_id started_at_epoch_ms
		completed_at_epoch_ms serialization application_name retention_timestamp`),
}

// An upgrade of DBOS that changes the tables must not go unnoticed: the statements
// in node.go would fail, or do the wrong thing, on a user's database.
func TestTablesOfDBOS(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if err := CreateTables(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		for table, want := range dbosColumns {
			got := columnsOf(t, d, table)
			var changes []string
			for _, column := range got {
				if !slices.Contains(want, column) {
					changes = append(changes, "new: "+column)
				}
			}
			for _, column := range want {
				if !slices.Contains(got, column) {
					changes = append(changes, "missing: "+column)
				}
			}
			if len(changes) > 0 {
				t.Errorf("the DBOS version in go.mod has other columns in %s than this package was written for (%s).\n"+
					"Check every statement in node.go against the new version, then update dbosColumns in this test.", table, strings.Join(changes, ", "))
			}
		}
		if key := keyOf(t, d); !slices.Equal(key, []string{"workflow_uuid", "function_id"}) {
			t.Errorf("the primary key of %s is %v: insertRecord relies on (workflow_uuid, function_id) to detect that a record exists", outputTable, key)
		}
	})
}

// columnsOf lists the columns of a table, mandatory ones with "!".
func columnsOf(t *testing.T, d *db.DB, table string) []string {
	t.Helper()
	query := `SELECT name || CASE WHEN "notnull" = 1 AND dflt_value IS NULL OR pk > 0 THEN '!' ELSE '' END FROM pragma_table_info($1)`
	if d.Kind() == db.Postgres {
		query = `SELECT column_name || CASE WHEN is_nullable = 'NO' AND column_default IS NULL THEN '!' ELSE '' END
			FROM information_schema.columns WHERE table_schema LIKE current_schema() || '%dbos' AND table_name = $1`
	}
	return texts(t, d, query, table)
}

// keyOf lists the columns of the primary key of the table of records.
func keyOf(t *testing.T, d *db.DB) []string {
	t.Helper()
	query := `SELECT name FROM pragma_table_info($1) WHERE pk > 0 ORDER BY pk`
	if d.Kind() == db.Postgres {
		query = `SELECT column_name FROM information_schema.key_column_usage JOIN information_schema.table_constraints USING (constraint_schema, constraint_name)
			WHERE constraint_schema LIKE current_schema() || '%dbos' AND table_constraints.table_name = $1 AND constraint_type = 'PRIMARY KEY' ORDER BY ordinal_position`
	}
	return texts(t, d, query, outputTable)
}

func texts(t *testing.T, d *db.DB, query string, args ...any) (found []string) {
	t.Helper()
	found, err := db.Find(t.Context(), d, db.Column[string], query, args...)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
