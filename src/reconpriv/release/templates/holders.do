preserve
«kept»generate double @held = «holder» == «value»
collapse (sum) @held (mean) @records @trials @weight, by(@group)
@corrected
display "count " %18.4f r(count) ", standard error " %14.4f r(se)
assert reldif(r(count), «count») < 1e-06
assert reldif(r(se), «error») < 1e-06
restore
