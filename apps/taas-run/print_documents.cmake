# cmake -P: TAAS_RUN writes its manual page and completions into FOLDER.
function(print file)
  execute_process(COMMAND ${TAAS_RUN} ${ARGN} OUTPUT_FILE ${FOLDER}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(MAKE_DIRECTORY ${FOLDER})
print(taas-run.1 --print-man-page)
foreach(shell bash fish zsh)
  print(taas-run.${shell} --print-completion ${shell})
endforeach()
