package fio

// Bounds are the bounds of the bin that holds a value.
func Bounds(value int64) (low, high int64) { return bounds(value) }
