function write_frames(file, names, values)
% WRITE_FRAMES  Write a CSV file with one row per frame and one column per behavior.

    quoted = cellfun(@(name) ['"' strrep(name, '"', '""') '"'], names, 'UniformOutput', false);
    handle = fopen(file, 'w', 'n', 'UTF-8');
    if handle < 0
        error('ethobench:file', 'Cannot write %s', file);
    end
    close_file = onCleanup(@() fclose(handle));
    fprintf(handle, '%s\n', strjoin(quoted, ','));
    row = [strjoin(repmat({'%d'}, 1, numel(names)), ',') '\n'];
    fprintf(handle, row, values');
end
