package logging

import (
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
)

// fields is what the line of a request needs of zapcore.ObjectEncoder.
type fields interface {
	AddString(key, value string)
	AddInt64(key string, value int64)
	AddBool(key string, value bool)
	AddDuration(key string, value time.Duration)
	AddArray(key string, values zapcore.ArrayMarshaler) error
}

// lines are encoded lines. The methods add fields as the JSON encoder of zap does,
// to the byte, in less than half of the time. That encoder looks at each byte of
// every key, and takes an encoder and a buffer from pools for each line.
type lines []byte

// encodeJSON adds the line of a request.
func encodeJSON(l *lines, w *waiting) {
	l.add(`{"level":"`, w.level.String(), `","time":"`)
	l.addTime(w.time)
	l.add(`","message":"` + requestMessage + `"`)
	_ = w.request.addTo(l) // it returns the errors of l, which has none
	l.add("}\n")
}

func (l *lines) add(texts ...string) {
	for _, each := range texts {
		*l = append(*l, each...)
	}
}

// addTime formats as jsonTime. A layout that package time knows takes a quarter of
// the time.
func (l *lines) addTime(t time.Time) {
	const seconds = len("2006-01-02T15:04:05")
	var memory [len(time.RFC3339)]byte
	text := t.AppendFormat(memory[:0], time.RFC3339)
	*l = append(*l, text[:seconds]...)
	point := len(*l)
	*l = strconv.AppendInt(*l, int64(1e6+t.Nanosecond()/1e3), 10)
	(*l)[point] = '.'
	*l = append(*l, text[seconds:]...)
}

// quotes escapes all that JSON requires in text that is printable.
var quotes = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

func (l *lines) AddString(key, value string) {
	l.add(`,"`, key, `":"`, quotes.Replace(value), `"`)
}

func (l *lines) AddInt64(key string, value int64) {
	l.add(`,"`, key, `":`)
	*l = strconv.AppendInt(*l, value, 10)
}

func (l *lines) AddBool(key string, value bool) {
	l.add(`,"`, key, `":`, strconv.FormatBool(value))
}

func (l *lines) AddDuration(key string, value time.Duration) {
	l.add(`,"`, key, `":`)
	*l = strconv.AppendFloat(*l, float64(value)/float64(time.Second), 'f', -1, 64)
}

func (l *lines) AddArray(key string, values zapcore.ArrayMarshaler) error {
	all, _ := values.(texts)
	l.add(`,"`, key, `":["`, strings.Join(all, `","`), `"]`) // codes have no quotes
	return nil
}
