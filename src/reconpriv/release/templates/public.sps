GET FILE=«file».
«kept»COMPUTE @one = 1.
AGGREGATE OUTFILE=* /BREAK=@one /@count=N.
COMPUTE @expected = «whole».
FORMATS @count @expected (F18.0).
LIST @count @expected.
