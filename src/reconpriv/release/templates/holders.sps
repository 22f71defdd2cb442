GET FILE=«file».
«kept»COMPUTE @held = 0.
IF («holder» = «value») @held = 1.
AGGREGATE OUTFILE=* /BREAK=@group /@held=SUM(@held)
  /@size=MEAN(@records) /@n=MEAN(@trials) /@scale=MEAN(@weight).
COMPUTE @share = @held / @size.
COMPUTE @part = MOD(@size, @n) / @n.
COMPUTE @uneven = @part * (1 - @part) * @n**2 / MAX(@n - 1, 1) * @share * (1 - @share).
COMPUTE @rounding = 0.
IF (@n < @size) @rounding = @scale**2 / 6.
COMPUTE @scaled = @scale * @size.
COMPUTE @scaledheld = @scale * @held.
COMPUTE @one = 1.
AGGREGATE OUTFILE=* /BREAK=@one /@held=SUM(@held) /@size=SUM(@size) /@uneven=SUM(@uneven)
  /@rounding=SUM(@rounding) /@scaled=SUM(@scaled) /@scaledheld=SUM(@scaledheld).
COMPUTE @p = @retention.
COMPUTE @stray = (1 - @p) / @domain.
COMPUTE @keep = @p + @stray.
COMPUTE @holders = (@scaledheld - @stray * @scaled) / @p.
COMPUTE @drawn = @holders * (@keep * (1 - @keep) - @stray * (1 - @stray))
  + @scaled * @stray * (1 - @stray).
COMPUTE @count = (@held - @stray * @size) / @p.
COMPUTE @se = SQRT((MAX(@drawn, 0) + @uneven) / @p**2 + @rounding).
COMPUTE @expected = «count».
COMPUTE @expected_se = «error».
FORMATS @count @expected @se @expected_se (F18.4).
LIST @count @expected @se @expected_se.
