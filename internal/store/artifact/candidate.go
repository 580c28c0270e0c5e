package artifact

import (
	"context"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/store/db"
)

// eachCandidate calls do for every artifact of the given numbers, complete with
// tags and annotations. It needs three statements for all of them.
func eachCandidate(ctx context.Context, tx *db.Tx, numbers []int64, do func(*Artifact)) error {
	if len(numbers) == 0 {
		return nil
	}
	in := " WHERE number IN (" + joined(numbers) + ")"
	rows, err := db.All(ctx, tx, scanRow, "SELECT "+columns+" FROM artifacts"+in)
	if err != nil {
		return err
	}
	byNumber := make(map[int64]*Artifact, len(rows))
	for i := range rows {
		byNumber[rows[i].number] = &rows[i]
	}
	if err := attachTags(ctx, tx, in, byNumber); err != nil {
		return err
	}
	if err := attachAnnotations(ctx, tx, in, byNumber); err != nil {
		return err
	}
	for i := range rows {
		do(&rows[i])
	}
	return nil
}

func attachTags(ctx context.Context, tx *db.Tx, in string, byNumber map[int64]*Artifact) error {
	_, err := db.All(ctx, tx, func(row db.Scanner) (none struct{}, err error) {
		var number int64
		var tag string
		if err := row.Scan(&number, &tag); err != nil {
			return none, err
		}
		a := byNumber[number]
		a.Tags = append(a.Tags, tag)
		return none, nil
	}, "SELECT number, tag FROM artifact_tags"+in+" ORDER BY number, tag")
	return err
}

func attachAnnotations(ctx context.Context, tx *db.Tx, in string, byNumber map[int64]*Artifact) error {
	_, err := db.All(ctx, tx, func(row db.Scanner) (none struct{}, err error) {
		var number int64
		n, err := scanAnnotation(prefixScanner{row, &number})
		if err == nil {
			a := byNumber[number]
			a.Annotations = append(a.Annotations, n)
		}
		return none, err
	}, "SELECT number, message, vibe, source, created_at FROM artifact_annotations"+in+" ORDER BY number, place")
	return err
}

// prefixScanner reads one more column before the requested ones.
type prefixScanner struct {
	row   db.Scanner
	first any
}

func (p prefixScanner) Scan(dest ...any) error { return p.row.Scan(append([]any{p.first}, dest...)...) }

func joined(numbers []int64) string {
	var out strings.Builder
	for i, number := range numbers {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(strconv.FormatInt(number, 10))
	}
	return out.String()
}
