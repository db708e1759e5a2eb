package tail

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// ErrEndless is matched by the error of a program that says more than it ever has to: it is to be ended, not waited for.
var ErrEndless = errors.New("there is no end to what it says")

// endless is the error of more than so many bytes, which begin so.
func endless(most int, begins []byte) error {
	return fmt.Errorf("%w: more than %d bytes, which begin with %.60q", ErrEndless, most, begins)
}

// Line reads up to the end of a line, which is in it. What has more bytes than most is no line: it is returned as far as it was read, with an
// error.
func Line(r *bufio.Reader, most int) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > most {
			return line, endless(most, line)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// All reads to the end, and no more than most bytes.
func All(r io.Reader, most int) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(text) > most {
		err = endless(most, text)
	}
	return text, err
}
