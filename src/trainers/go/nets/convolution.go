package nets

import (
	"transect-trainer-go/blas"
	"transect-trainer-go/fault"
	"transect-trainer-go/number"
	"transect-trainer-go/plan"
	"transect-trainer-go/trainer"
)

// Windows overlap: unfolded, large images take kernel^2 times their memory. More bytes than this are not
// kept until the backward pass, but unfolded again, some samples at a time.
const (
	keptBytes = 1 << 26
	partBytes = 1 << 23
)

// convolution is a product of matrices over unfolded windows (im2col), one for each group. A row of `columns` is one place of
// the window in one channel, its columns are the places of the output in all samples.
type convolution[T trainer.Number] struct {
	inputs, outputs, kernel, pad, stride       int
	groups                                     int
	height, width, outHeight, outWidth         int
	weight, bias, weightGradient, biasGradient []T
	columns, y, inner, all                     number.Buffer[T]
	team                                       *number.Team
	// What the parts of a job read: samples [from, from+some) of n.
	x, g, cols, spread                        []T
	n, from, some                             int
	unfoldPart, foldPart, startPart, biasPart func(part int)
}

func newConvolution[T trainer.Number](one plan.Layer, sample shape, b *binder[T]) *convolution[T] {
	c := &convolution[T]{
		inputs: one.Inputs, outputs: one.Outputs, kernel: one.Kernel, pad: one.Padding, stride: one.Stride,
		groups: max(1, one.Groups), height: sample[1], width: sample[2], team: b.team,
	}
	if c.kernel < 1 || c.stride < 1 || c.pad < 0 || c.height+2*c.pad < c.kernel || c.width+2*c.pad < c.kernel {
		panic(fault.Bad("a convolution with kernel %d, padding %d and stride %d does not take samples of shape %v",
			c.kernel, c.pad, c.stride, sample))
	}
	if c.inputs%c.groups != 0 || c.outputs%c.groups != 0 {
		panic(fault.Bad("a convolution of %d inputs and %d outputs has no %d groups", c.inputs, c.outputs, c.groups))
	}
	c.outHeight = (c.height+2*c.pad-c.kernel)/c.stride + 1
	c.outWidth = (c.width+2*c.pad-c.kernel)/c.stride + 1
	c.weight, c.weightGradient = b.take(c.outputs*c.rows()/c.groups, "a convolution's weight")
	if one.Bias {
		c.bias, c.biasGradient = b.take(c.outputs, "a convolution's bias")
	}
	c.unfoldPart, c.foldPart, c.startPart, c.biasPart = c.unfoldChannel, c.foldChannel, c.startChannel, c.biasChannel
	return c
}

func (c *convolution[T]) rows() int { return c.inputs * c.kernel * c.kernel }

// plain tells that the samples are their own columns.
func (c *convolution[T]) plain() bool { return c.kernel == 1 && c.stride == 1 && c.pad == 0 }

// same tells that the output has the shape of the input: then a row is the channel, shifted.
func (c *convolution[T]) same() bool {
	return c.stride == 1 && c.outHeight == c.height && c.outWidth == c.width
}

// samplesAtOnce is how many are unfolded together.
func (c *convolution[T]) samplesAtOnce(n int) int {
	bytes := c.rows() * c.outHeight * c.outWidth * number.Size[T]()
	if c.plain() || bytes*n <= keptBytes {
		return n
	}
	return min(n, max(1, partBytes/bytes))
}

func (c *convolution[T]) forward(x []T, n int, _ bool) []T {
	c.x, c.n = x, n
	area, outputs, rows := c.outHeight*c.outWidth, c.outputs/c.groups, c.rows()/c.groups
	y := c.y.Of(c.outputs * n * area)
	c.spread = y
	var beta T
	if c.bias != nil {
		c.team.Run(c.outputs, len(y), c.startPart)
		beta = 1
	}
	some := c.samplesAtOnce(n)
	for from := 0; from < n; from += some {
		columns, ld := c.unfold(from, min(some, n-from))
		for group := range c.groups {
			blas.Product(false, false, outputs, c.some*area, rows, c.weight[group*outputs*rows:], rows,
				columns[group*rows*ld:], ld, beta, y[(group*outputs*n+from)*area:], n*area)
		}
	}
	return y
}

// startChannel writes the bias where the output will be added to it.
func (c *convolution[T]) startChannel(channel int) {
	row := c.n * c.outHeight * c.outWidth
	fill(c.spread[channel*row:(channel+1)*row], c.bias[channel])
}

func fill[T trainer.Number](x []T, value T) {
	for i := range x {
		x[i] = value
	}
}

// unfold returns the columns of some samples, and the distance of their rows.
func (c *convolution[T]) unfold(from, some int) ([]T, int) {
	c.from, c.some = from, some
	if c.plain() {
		return c.x[from*c.height*c.width:], c.n * c.height * c.width
	}
	wide := some * c.outHeight * c.outWidth
	c.cols = c.columns.Of(c.rows() * wide)
	c.team.Run(c.inputs, len(c.cols), c.unfoldPart)
	return c.cols, wide
}

func (c *convolution[T]) unfoldChannel(channel int) {
	in, out := c.height*c.width, c.outHeight*c.outWidth
	images := c.x[(channel*c.n+c.from)*in : (channel*c.n+c.from+c.some)*in]
	wide := c.some * out
	for i := range c.kernel {
		for j := range c.kernel {
			row := c.cols[((channel*c.kernel+i)*c.kernel+j)*wide:][:wide]
			if c.same() {
				shift(row, images, (i-c.pad)*c.width+j-c.pad)
				c.blank(row, i, j)
				continue
			}
			for image := range c.some {
				c.pick(row[image*out:(image+1)*out], images[image*in:(image+1)*in], i, j)
			}
		}
	}
}

// shift writes row[k] = images[k+by] where there is one, else 0.
func shift[T trainer.Number](row, images []T, by int) {
	if by >= 0 {
		end := copy(row, images[min(by, len(images)):])
		clear(row[end:])
		return
	}
	by = min(-by, len(row))
	clear(row[:by])
	copy(row[by:], images)
}

// blank sets to zero what place (i, j) of the window finds outside of the image.
func (c *convolution[T]) blank(row []T, i, j int) {
	up, left := i-c.pad, j-c.pad
	area := c.outHeight * c.outWidth
	top, bottom := min(max(0, -up), c.outHeight), max(0, min(c.outHeight, c.height-up))
	west, east := min(max(0, -left), c.outWidth), max(0, min(c.outWidth, c.width-left))
	if top == 0 && bottom == c.outHeight && west == 0 && east == c.outWidth {
		return
	}
	for ; len(row) >= area; row = row[area:] {
		clear(row[:top*c.outWidth])
		clear(row[bottom*c.outWidth : area])
		if west == 1 {
			for k := 0; k < area; k += c.outWidth {
				row[k] = 0
			}
		} else if east == c.outWidth-1 {
			for k := east; k < area; k += c.outWidth {
				row[k] = 0
			}
		} else if west > 0 || east < c.outWidth {
			for k := 0; k < area; k += c.outWidth {
				clear(row[k : k+west])
				clear(row[k+east : k+c.outWidth])
			}
		}
	}
}

// pick writes what place (i, j) of the window finds in one image, zeros outside of it.
func (c *convolution[T]) pick(row, image []T, i, j int) {
	for y := range c.outHeight {
		line := row[y*c.outWidth : (y+1)*c.outWidth]
		source := y*c.stride + i - c.pad
		if source < 0 || source >= c.height {
			clear(line)
			continue
		}
		pixels := image[source*c.width : (source+1)*c.width]
		at := j - c.pad
		for x := range line {
			if at >= 0 && at < len(pixels) {
				line[x] = pixels[at]
			} else {
				line[x] = 0
			}
			at += c.stride
		}
	}
}

func (c *convolution[T]) backward(g []T, n int, need bool) []T {
	c.n, c.g = n, g
	area, outputs, rows := c.outHeight*c.outWidth, c.outputs/c.groups, c.rows()/c.groups
	if c.bias != nil {
		c.team.Run(c.outputs, len(g), c.biasPart)
	}
	var inner []T
	if need {
		inner = c.inner.Of(c.inputs * n * c.height * c.width)
		if !c.plain() {
			clear(inner)
		}
	}
	some := c.samplesAtOnce(n)
	var beta T
	for from := 0; from < n; from += some {
		var columns []T
		var ld int
		if some == n && !c.plain() {
			// They are those of the forward pass.
			c.from, c.some = 0, n
			ld = n * area
			columns = c.columns.Of(c.rows() * ld)
		} else {
			columns, ld = c.unfold(from, min(some, n-from))
		}
		for group := range c.groups {
			blas.Product(false, true, outputs, rows, c.some*area, g[(group*outputs*n+from)*area:], n*area,
				columns[group*rows*ld:], ld, beta, c.weightGradient[group*outputs*rows:], rows)
		}
		beta = 1
		if !need {
			continue
		}
		// The columns are not needed any more: their gradient takes their place.
		spread, wide := columns, c.some*area
		if c.plain() {
			spread = inner
		}
		for group := range c.groups {
			blas.Product(true, false, rows, wide, outputs, c.weight[group*outputs*rows:], rows,
				g[(group*outputs*n+from)*area:], n*area, 0, spread[group*rows*wide:], wide)
		}
		if !c.plain() {
			c.cols, c.spread = columns, inner
			c.team.Run(c.inputs, len(columns), c.foldPart)
		}
	}
	return inner
}

func (c *convolution[T]) biasChannel(channel int) {
	row := c.n * c.outHeight * c.outWidth
	c.biasGradient[channel] = sum(c.g[channel*row : (channel+1)*row])
}

// foldChannel adds the gradients of columns to those of the samples.
func (c *convolution[T]) foldChannel(channel int) {
	in, out := c.height*c.width, c.outHeight*c.outWidth
	images := c.spread[(channel*c.n+c.from)*in : (channel*c.n+c.from+c.some)*in]
	wide := c.some * out
	for i := range c.kernel {
		for j := range c.kernel {
			row := c.cols[((channel*c.kernel+i)*c.kernel+j)*wide:][:wide]
			if !c.same() {
				for image := range c.some {
					c.put(images[image*in:(image+1)*in], row[image*out:(image+1)*out], i, j)
				}
				continue
			}
			c.blank(row, i, j)
			by := (i-c.pad)*c.width + j - c.pad
			if by >= 0 {
				by = min(by, len(images))
				add(images[by:], row[:len(images)-by])
			} else {
				by = min(-by, len(row))
				add(images[:len(images)-by], row[by:])
			}
		}
	}
}

// put adds what pick would have taken.
func (c *convolution[T]) put(image, row []T, i, j int) {
	for y := range c.outHeight {
		source := y*c.stride + i - c.pad
		if source < 0 || source >= c.height {
			continue
		}
		pixels := image[source*c.width : (source+1)*c.width]
		at := j - c.pad
		for _, value := range row[y*c.outWidth : (y+1)*c.outWidth] {
			if at >= 0 && at < len(pixels) {
				pixels[at] += value
			}
			at += c.stride
		}
	}
}
