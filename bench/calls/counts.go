package calls

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Counts is a flag: how many of something there are, one time after the other.
type Counts []int

func (c *Counts) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(*c), " ", ","), "[]")
}

// Set reads numbers such as 1,16,64.
func (c *Counts) Set(list string) error {
	*c = nil
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return errors.New("want numbers above 0, such as 1,16,64")
		}
		*c = append(*c, n)
	}
	return nil
}
