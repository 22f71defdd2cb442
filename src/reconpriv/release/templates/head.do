* Run it where the data are: do «script»

version 14
use «file», clear
scalar @p = @retention
scalar @m = @domain

* Data of one row per group, with @held holders as published: the corrected count.
capture program drop @corrected
program @corrected, rclass
    tempvar share part uneven rounding scaled
    scalar @stray = (1 - @p) / @m
    scalar @keep = @p + @stray
    generate double `share' = @held / @records
    generate double `part' = mod(@records, @trials) / @trials
    generate double `uneven' = `part' * (1 - `part') * @trials^2 / max(@trials - 1, 1) ///
        * `share' * (1 - `share')
    generate double `rounding' = cond(@trials < @records, @weight^2 / 6, 0)
    generate double `scaled' = @weight * @records
    quietly summarize `uneven'
    scalar @uneven = r(sum)
    quietly summarize `rounding'
    scalar @rounding = r(sum)
    quietly summarize `scaled'
    scalar @all = r(sum)
    quietly replace `scaled' = @weight * @held
    quietly summarize `scaled'
    scalar @holders = (r(sum) - @stray * @all) / @p
    scalar @drawn = @holders * (@keep * (1 - @keep) ///
        - @stray * (1 - @stray)) + @all * @stray * (1 - @stray)
    quietly summarize @records
    scalar @all = r(sum)
    quietly summarize @held
    return scalar count = (r(sum) - @stray * @all) / @p
    return scalar se = sqrt((max(@drawn, 0) + @uneven) / @p^2 + @rounding)
end
