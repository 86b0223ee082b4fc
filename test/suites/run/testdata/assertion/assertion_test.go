package assertion

import "testing"

func TestHasAPart(t *testing.T) {
	t.Run("part", func(t *testing.T) { t.Error("1 is not 2") })
}
