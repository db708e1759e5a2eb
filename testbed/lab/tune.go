package lab

import (
	"fmt"

	"netdelta/network"
)

// tune carries out the operations that conditions of links and devices come to.
func (b *builder) tune(op network.Op) error {
	switch op := op.(type) {
	case network.Shape:
		return b.shape(op)
	case network.Impair:
		return b.impair(op)
	case network.Bond:
		return b.bond(op)
	case network.Features:
		return b.features(op)
	case network.Steer:
		return b.steer(op)
	}
	return fmt.Errorf("the lab can't carry out %T", op)
}
