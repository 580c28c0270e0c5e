package builtin

import "fmt"

// counted is so many things: "1 job", "2 jobs".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
