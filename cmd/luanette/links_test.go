package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// links returns the relative targets of the links of a page, as paths from the root
// of the repository.
func links(page, text string) (targets []string) {
	for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
		target, _, _ := strings.Cut(m[1], "#")
		if target == "" || strings.Contains(target, "://") {
			continue
		}
		targets = append(targets, path.Join(path.Dir(page), target))
	}
	return targets
}

// TestDocsLinks checks that every relative link in the documentation has a target, and
// that every page of docs/ is at most two clicks away from README.md.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	const maxClicks = 2
	clicks := map[string]int{"README.md": 0}
	for queue := []string{"README.md"}; len(queue) > 0; queue = queue[1:] {
		page := queue[0]
		for _, target := range links(page, read(t, page)) {
			if _, err := os.Stat(filepath.Join("../..", target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, target)
				continue
			}
			if _, seen := clicks[target]; !seen && strings.HasSuffix(target, ".md") {
				clicks[target] = clicks[page] + 1
				queue = append(queue, target)
			}
		}
	}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, "docs", func(page string, _ fs.DirEntry, err error) error {
		if n, seen := clicks[page]; err == nil && strings.HasSuffix(page, ".md") && (!seen || n > maxClicks) {
			t.Errorf("%s is not reachable from README.md in %d clicks: link it in docs/README.md", page, maxClicks)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
